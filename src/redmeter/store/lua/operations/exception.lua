-- exception: count exceptions of groups, and keep the newest of each group.
-- Keys: exceptions:, a sorted set of groups scored with the time of their last exception; exception:(other),
--   the hash of exceptions beyond the limit of groups; then the hash of a group, for each entry.
-- Arguments: seconds that a group lives; most groups; seconds of silence after which a group may be removed
--   for a new one; most routes; most releases; bytes of a hash's key before the group; how many
--   precisions, and of each: its width, how many intervals; then for each entry: group, start of an interval,
--   count, first, last (Unix seconds), type, message, place, log_place, function, traceback ("" for a type:
--   those that are stored stay); how many routes, and of each: name, count, first, last; and the releases.
-- Removes the group that was seen least recently if there are too many; field "evicted" of exception:(other)
--   counts these. A group that finds no room is counted in exception:(other).
-- Cost: 40 to 85 µs for each entry.

function operations.exception(i, keys, a)
  local life, most, silent = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local most_routes, most_releases = tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  local before = tonumber(ARGV[a + 5])
  local index, other = KEYS[i], i + 1
  local OTHER, DETAILS = '(other)', {'type', 'message', 'place', 'log_place', 'function', 'traceback'}
  local precisions = {}
  local at = a + 7
  for n = 1, tonumber(ARGV[a + 6]) do
    precisions[n] = {width = ARGV[at], size = tonumber(ARGV[at + 1])}
    at = at + 2
  end

  -- Add the shares of ARGV[from…] to those that are stored, as JSON.
  local function add_shares(text, limit, from, count)
    local known, shares = {}, {}
    local done, stored = pcall(cjson.decode, text or '[]')
    if done and type(stored) == 'table' then
      for _, share in ipairs(stored) do
        if type(share) == 'table' and type(share[1]) == 'string' and type(share[2]) == 'number'
            and type(share[3]) == 'number' and type(share[4]) == 'number' then
          known[share[1]] = share
          shares[#shares + 1] = share
        end
      end
    end
    local function add(name, events, first, last)
      local share = known[name]
      if share then
        share[2] = share[2] + events
        share[3], share[4] = math.min(share[3], first), math.max(share[4], last)
      else
        known[name] = {name, events, first, last}
        shares[#shares + 1] = known[name]
      end
    end
    for n = from, from + 4 * count - 1, 4 do
      add(ARGV[n], tonumber(ARGV[n + 1]), tonumber(ARGV[n + 2]), tonumber(ARGV[n + 3]))
    end
    -- The newest first, (other) last.
    table.sort(shares, function(one, two)
      if (one[1] == OTHER) ~= (two[1] == OTHER) then return two[1] == OTHER end
      if one[4] ~= two[4] then return one[4] > two[4] end
      return one[1] < two[1]
    end)
    local named = #shares - (known[OTHER] and 1 or 0)
    while named > limit do
      local share = table.remove(shares, named)
      add(OTHER, share[2], share[3], share[4])
      named = named - 1
    end
    return cjson.encode(shares)
  end

  -- Return whether there is room for a new group, made if necessary.
  local function make_room()
    call('ZREMRANGEBYSCORE', index, '-inf', '(' .. whole(server - life))
    if call('ZCARD', index) < most then return true end
    local oldest = call('ZRANGEBYSCORE', index, '-inf', whole(server - silent), 'LIMIT', 0, 1)[1]
    if not oldest then return false end
    call('DEL', string.sub(KEYS[other], 1, before) .. oldest)
    call('ZREM', index, oldest)
    call('HINCRBY', KEYS[other], 'evicted', 1)
    call('EXPIRE', KEYS[other], life)
    return true
  end

  local function count(key, from, routes, route_count, releases, release_count)
    local start, amount = tonumber(ARGV[from + 1]), tonumber(ARGV[from + 2])
    local first, last = tonumber(ARGV[from + 3]), tonumber(ARGV[from + 4])
    local group, described = ARGV[from], ARGV[from + 5] ~= ''
    local fields = {'count', 'first', 'last', 'routes', 'releases'}
    for n, precision in ipairs(precisions) do fields[5 + n] = precision.width end
    local stored = call('HMGET', KEYS[key], unpack(fields))
    if not tonumber(stored[1] or '') and group ~= OTHER and not make_room() then
      group, key, described, route_count, release_count = OTHER, other, false, 0, 0
      stored = call('HMGET', KEYS[key], unpack(fields))
    end
    first, last = math.min(first, server), math.min(last, server)
    local old_last = tonumber(stored[3] or '')
    local written = {
      'count', whole((tonumber(stored[1] or '') or 0) + amount),
      'first', string.format('%.3f', math.min(tonumber(stored[2] or '') or first, first)),
      'last', string.format('%.3f', math.max(old_last or last, last)),
    }
    if described and last >= (old_last or last) then
      for n, field in ipairs(DETAILS) do
        local text = ARGV[from + 4 + n]
        if text ~= '' or field ~= 'traceback' then
          written[#written + 1] = field
          written[#written + 1] = text
        end
      end
    end
    if route_count > 0 then
      written[#written + 1] = 'routes'
      written[#written + 1] = add_shares(stored[4], most_routes, routes, route_count)
    end
    if release_count > 0 then
      written[#written + 1] = 'releases'
      written[#written + 1] = add_shares(stored[5], most_releases, releases, release_count)
    end
    for n, precision in ipairs(precisions) do
      local width, size = tonumber(precision.width), precision.size
      local running = math.floor(server / width) * width
      local begin = math.min(start - start % width, running)
      if amount > 0 and begin > running - size * width then
        local text = stored[5 + n]
        written[#written + 1] = precision.width
        written[#written + 1] =
          add_packed(text, width, size, running, begin, whole(begin) .. ' ', begin, amount)
      end
    end
    call('HSET', KEYS[key], unpack(written))
    return group, key, last
  end

  local function keep(group, key, last)
    if group ~= OTHER then
      call('ZADD', index, 'GT', string.format('%.3f', last), group)
      call('EXPIRE', index, life)
    end
    call('EXPIRE', KEYS[key], life)
  end

  for key = i + 2, i + keys - 1 do
    local from = at
    local routes = from + 12
    local route_count = tonumber(ARGV[from + 11])
    local releases = routes + 4 * route_count + 1
    local release_count = tonumber(ARGV[releases - 1])
    local done, group, written, last =
      pcall(count, key, from, routes, route_count, releases, release_count)
    if done then
      local kept, problem = pcall(keep, group, written, last)
      if not kept then reject_unkept(key, problem) end
    else
      reject(key, group)
    end
    at = releases + 4 * release_count
  end
end
