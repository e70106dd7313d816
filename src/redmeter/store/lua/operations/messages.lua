-- Shared by operations that count by intervals in a text, "NEWEST COUNT COUNT …": the start of the newest
-- interval, Unix seconds, then the counts of that interval and of those before it.

-- Add to the interval of a start. `to` is the newest interval from now on, and `head` how a text of it
-- begins; a text that is newer stays so. `running` is the current interval. With `all`, no count is added
-- before the first that is known, nor is a zero there removed.
local function add_packed(text, step, size, running, to, head, start, amount, all)
  if to == start and text and string.sub(text, 1, #head) == head then  -- as nearly always
    local first, rest = string.match(text, '^(%d+)(.*)$', #head + 1)
    if first then return head .. whole(first + amount) .. rest end
  end
  local newest, found = string.match(text or '', '^(%d+) ([%d ]+)$')
  local counts = {}
  newest = tonumber(newest or '')
  if newest and newest <= running then
    for count in string.gmatch(found, '%d+') do counts[#counts + 1] = count end
  else
    newest = to  -- none, or the clock was set back
  end
  if newest < to then
    local moved, gap = {}, math.min((to - newest) / step, size)
    for n = 1, gap do moved[n] = '0' end
    for n = 1, math.min(#counts, size - gap) do moved[gap + n] = counts[n] end
    counts, newest = moved, to
  end
  local at = (newest - start) / step + 1
  if at <= (all and #counts or size) then
    for n = #counts + 1, at do counts[n] = '0' end
    counts[at] = whole(counts[at] + amount)
  end
  while not all and counts[#counts] == '0' do counts[#counts] = nil end
  return whole(newest) .. ' ' .. table.concat(counts, ' ')
end

-- steps: count by steps of a few minutes, for windows that slide.
-- Keys: messages:, then hashes, field -> "NEWEST COUNT COUNT …": the start of the newest step, Unix
--   seconds, then the counts of that step and of those before it. The field "" counts all of a hash,
--   and has as many counts as steps are known: fewer than kept where the hash is younger than its log.
-- Arguments: seconds of a step; how many steps are kept; places reserved for coarse fields; and for each
--   hash: its member of messages:, its places for other fields, the start of a step, how many triples, and
--   these: field, its coarse field, amount. A field without a place counts under its coarse one; what exceeds
--   all places is added to "(other)", which is none. Such fields are in `renamed` for what follows.
-- Returns for a hash "is COARSE OTHER": the amounts that were added under coarse fields and to "(other)".
-- A hash expires when its steps have left. Fields that have left are removed with the first write of a
--   step, where there are more than half of the most. Refused writes are reported as unkept: nothing that
--   counts for good is lost.
-- Cost: a third of what else a batch of messages takes, 3 µs for each pair.

function operations.steps(i, keys, a)
  local OTHER = '(other)'
  local step, size, reserved = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  local running = math.floor(server / step) * step
  local left = running - size * step  -- the newest step that has left
  a = a + 3

  local function newest_of(text)
    return tonumber(string.match(text or '', '^%d+') or '')
  end

  local function added(text, to, head, start, amount, all)
    return add_packed(text, step, size, running, to, head, start, amount, all)
  end

  local function remove_left(key, texts)
    local found, gone = call('HGETALL', key), {}
    for at = 1, #found, 2 do
      if found[at] ~= '' and (newest_of(found[at + 1]) or left) <= left then gone[#gone + 1] = found[at] end
    end
    for _, field in ipairs(gone) do texts[field] = false end
    if #gone > 0 then call('HDEL', key, unpack(gone)) end
  end

  local function count(at, member, most, start, first, last)
    local key = KEYS[at]
    start = math.min(start - start % step, running)
    if start <= left then return end
    local fields, head, head_of_all = {'', OTHER}, whole(start) .. ' ', whole(running) .. ' '
    for triple = first, last, 3 do fields[#fields + 1] = ARGV[triple] end
    local stored, texts = call('HMGET', key, unpack(fields)), {}
    for n, field in ipairs(fields) do texts[field] = stored[n] end
    local all = stored[1]
    local newest = newest_of(all)
    if not newest or newest > running then
      -- Known are all steps of a log that was silent, else only the one that is running.
      local last = attempt('ZSCORE', KEYS[i], member)
      local silent = not last or type(last) ~= 'table' and tonumber(last) <= left
      all = whole(running) .. string.rep(' 0', silent and size or 1)
    elseif newest < running and 2 * call('HLEN', key) > most then
      remove_left(key, texts)
    end
    local places = call('HLEN', key) - (stored[1] and 1 or 0) - (texts[OTHER] and 1 or 0)
    local names = renamed[member] or {}
    renamed[member] = names

    -- The field that has a place for another one.
    local function place(field, coarse)
      if names[field] then return names[field] end
      if field == OTHER or texts[field] then return field end
      if places >= most then
        if texts[coarse] == nil then texts[coarse] = call('HGET', key, coarse) end
        names[field] = (texts[coarse] or places < most + reserved) and coarse or OTHER
        field = names[field]
        if field == OTHER or texts[field] then return field end
      end
      places, texts[field] = places + 1, ''
      return field
    end

    local total, in_coarse, sums, order, written = 0, 0, {}, {}, {}
    for triple = first, last, 3 do
      local coarse, amount = ARGV[triple + 1], tonumber(ARGV[triple + 2])
      local field = place(ARGV[triple], coarse)
      if not sums[field] then order[#order + 1] = field end
      total, sums[field] = total + amount, (sums[field] or 0) + amount
      if field == coarse then in_coarse = in_coarse + amount end
    end
    for _, field in ipairs(order) do
      written[#written + 1] = field
      written[#written + 1] = added(texts[field], start, head, start, sums[field])
    end
    call('HSET', key, '', added(all, running, head_of_all, start, total, true), unpack(written))
    if in_coarse > 0 or sums[OTHER] then
      reject(at, 'is ' .. whole(in_coarse) .. ' ' .. whole(sums[OTHER] or 0))
    end
    call('EXPIRE', key, (size + 1) * step)
  end

  for at = i + 1, i + keys - 1 do
    local last = a + 3 + 3 * tonumber(ARGV[a + 3])
    local done, problem = pcall(count, at, ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), a + 4, last)
    if not done then reject_unkept(at, problem) end
    a = last + 1
  end
end

-- push: put entries in front of lists, the newest first, and keep so many.
-- Keys: the lists.
-- Arguments: seconds that a list lives after its last entry; and for each list: how many it keeps,
--   how many entries, the entries, the oldest first.
-- A list that had entries but no time to live is another program's too, and stays without.

function operations.push(i, keys, a)
  local life = ARGV[a]

  local function put(key, keep, first, last)
    local ttl = call('TTL', key)
    for at = first, last, 1000 do  -- unpack takes some thousands
      call('LPUSH', key, unpack(ARGV, at, math.min(at + 999, last)))
    end
    call('LTRIM', key, 0, keep - 1)
    if ttl ~= -1 then call('EXPIRE', key, life) end
  end

  a = a + 1
  for key = i, i + keys - 1 do
    local last = a + 1 + tonumber(ARGV[a + 1])
    local done, problem = pcall(put, KEYS[key], tonumber(ARGV[a]), a + 2, last)
    if not done then reject(key, problem) end
    a = last + 1
  end
end

-- seen: when something was seen first and last, with a sample of it.
-- Keys: hashes, field -> "FIRST LAST SAMPLE", times in Unix seconds.
-- A refused write is reported as unkept: no count is lost.
-- Arguments: seconds that a hash lives; and for each hash: its member of messages:, about how many fields
--   it keeps, those seen last, how many follow, and of each: its name, first, last, sample; "" if unknown:
--   then the stored one stays. A field in `renamed` is seen under its name there; "(other)" is not.

local function parts(text)
  local first, last, sample = string.match(text or '', '^(-?[%d.]+) (-?[%d.]+) (.*)$')
  return tonumber(first or ''), tonumber(last or ''), first, last, sample
end

-- Keep those that were seen last.
local function keep_newest(key, most)
  local found, fields = call('HGETALL', key), {}
  for at = 1, #found, 2 do
    local _, last = parts(found[at + 1])
    fields[#fields + 1] = {found[at], last or -math.huge}
  end
  table.sort(fields, function(one, other) return one[2] > other[2] end)
  for at = most + 1, #fields do call('HDEL', key, fields[at][1]) end
end

function operations.seen(i, keys, a)
  local life = ARGV[a]
  a = a + 1

  local function see_one(key, name, first, last, sample)
    local began, ended, old_first, old_last, old_sample = parts(call('HGET', key, name))
    if began and began < tonumber(first) then first = old_first end
    if ended and ended > tonumber(last) then
      last, sample = old_last, old_sample
    elseif sample == '' then
      sample = old_sample or ''
    end
    call('HSET', key, name, first .. ' ' .. last .. ' ' .. sample)
  end

  local function see(key, names, most, first_arg, last_arg)
    for at = first_arg, last_arg, 4 do
      local name = names and names[ARGV[at]] or ARGV[at]
      if name ~= '(other)' then see_one(key, name, ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) end
    end
    if call('HLEN', key) > 1.5 * most then keep_newest(key, most) end
    call('EXPIRE', key, life)
  end

  for key = i, i + keys - 1 do
    local last = a + 2 + 4 * tonumber(ARGV[a + 2])
    local done, problem = pcall(see, KEYS[key], renamed[ARGV[a]], tonumber(ARGV[a + 1]), a + 3, last)
    if not done then reject_unkept(key, problem) end
    a = last + 1
  end
end

-- touch: record in an index when members were last active, and remove inactive ones.
-- Keys: a sorted set. Arguments: seconds after which a member is forgotten; member, Unix seconds …

function operations.touch(i, keys, a, count)
  local life = tonumber(ARGV[a])

  local function note()
    for at = a + 1, a + count - 1, 2 do
      call('ZADD', KEYS[i], 'GT', ARGV[at + 1], ARGV[at])
    end
    call('ZREMRANGEBYSCORE', KEYS[i], '-inf', '(' .. whole(server - life))
    call('EXPIRE', KEYS[i], ARGV[a])
  end

  local done, problem = pcall(note)
  if not done then reject_unkept(i, problem) end
end

-- exception: count exceptions of groups, and keep the newest of each group.
-- Keys: exceptions:, a sorted set of groups scored with the time of their last exception; exception:(other),
--   the hash of exceptions beyond the limit of groups; then the hash of a group, for each entry.
-- Arguments: seconds that a group lives; most groups; most coarse groups in addition; most routes; most
--   releases; bytes of a hash's key before the group; how many precisions, and of each: its width, how
--   many intervals; then for each entry: group, coarse group (may be the same; "": none), start of an
--   interval, count, first, last (Unix seconds), type, message, place, log_place, function, traceback ("" for
--   a type: those that are stored stay); how many routes, and of each: name, count, first, last; and the
--   releases.
-- An entry whose group is not there and finds no room counts in its coarse group, whose field "coarse" is
--   "1"; one that finds no room there either, in exception:(other). No group is removed for another one.
-- Cost: 40 to 85 µs for each entry.

function operations.exception(i, keys, a)
  local life, most, most_coarse = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
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

  -- Return the group that has an entry whose own is not there, and the name of its hash.
  local function placed(group, coarse, name)
    call('ZREMRANGEBYSCORE', index, '-inf', '(' .. whole(server - life))
    local groups = call('ZCARD', index)
    if group ~= coarse and groups < most then return group, name end
    if coarse ~= '' then
      name = string.sub(KEYS[other], 1, before) .. coarse
      if groups < most + most_coarse or call('HEXISTS', name, 'count') == 1 then return coarse, name end
    end
    return OTHER, KEYS[other]
  end

  local function count(key, from, routes, route_count, releases, release_count)
    local start, amount = tonumber(ARGV[from + 2]), tonumber(ARGV[from + 3])
    local first, last = tonumber(ARGV[from + 4]), tonumber(ARGV[from + 5])
    local group, coarse, described = ARGV[from], ARGV[from + 1], ARGV[from + 6] ~= ''
    local name = KEYS[key]
    local fields = {'count', 'first', 'last', 'routes', 'releases'}
    for n, precision in ipairs(precisions) do fields[5 + n] = precision.width end
    local stored = call('HMGET', name, unpack(fields))
    if not tonumber(stored[1] or '') and group ~= OTHER then
      group, name = placed(group, coarse, name)
      if name ~= KEYS[key] then stored = call('HMGET', name, unpack(fields)) end
      if group == OTHER then described, route_count, release_count = false, 0, 0 end
    end
    first, last = math.min(first, server), math.min(last, server)
    local old_last = tonumber(stored[3] or '')
    local written = {
      'count', whole((tonumber(stored[1] or '') or 0) + amount),
      'first', string.format('%.3f', math.min(tonumber(stored[2] or '') or first, first)),
      'last', string.format('%.3f', math.max(old_last or last, last)),
    }
    if group == coarse then
      written[#written + 1] = 'coarse'
      written[#written + 1] = '1'
    end
    if described and last >= (old_last or last) then
      for n, field in ipairs(DETAILS) do
        local text = ARGV[from + 5 + n]
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
    call('HSET', name, unpack(written))
    return group, name, last
  end

  local function keep(group, name, last)
    if group ~= OTHER then
      call('ZADD', index, 'GT', string.format('%.3f', last), group)
      call('EXPIRE', index, life)
    end
    call('EXPIRE', name, life)
  end

  for key = i + 2, i + keys - 1 do
    local from = at
    local routes = from + 13
    local route_count = tonumber(ARGV[from + 12])
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
