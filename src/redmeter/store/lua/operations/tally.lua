-- tally: add to members of sorted sets that are kept by the hour, up to so many members an hour in
-- all sets of a group together.
-- Keys: five for each: the group's hash, hour -> how many members there are, and four, see hourly.lua;
--   seven without a prefix.
-- Arguments: seconds that they live; most members; how many keys there are for each; and for each: the
--   hour, how many pairs, and these: member, amount. Amounts of members beyond the most are added to
--   "(other)", which is none.
-- The hash is read if a member is new, and written if it stays. Members of other programs count
--   towards the limit in the sets that members are added to.

local OTHER = '(other)'
local DAY = 86400

function operations.tally(i, keys, a)
  local life, most, step = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  a = a + 3

  -- How many members an hour of a group has, but for the one that was just added.
  local function counted(hash, key, hour)
    local members = call('ZCARD', key) - 1
    if call('ZSCORE', key, OTHER) then members = members - 1 end
    return math.max(members, tonumber(call('HGET', hash, whole(hour)) or '') or 0)
  end

  local function note(hash, hour, members)
    if call('HSET', hash, whole(hour), members) == 1 then
      for _, field in ipairs(call('HKEYS', hash)) do
        if (tonumber(field) or 0) < hour - DAY then call('HDEL', hash, field) end
      end
    end
    call('EXPIRE', hash, DAY)
  end

  local function add(at, hour, first, last)
    local key, fresh, of = hourly(at + 1, hour, life, step == 7 and at + 5, true)
    if not key then return 'aged' end
    local hash, before, members = KEYS[at]
    for pair = first, last, 2 do
      local member, amount = ARGV[pair], ARGV[pair + 1]
      if call('ZINCRBY', key, amount, member) == amount and member ~= OTHER then
        if not members then
          local done, size = pcall(counted, hash, key, of)
          if not done then
            reject_unkept(at, size)
            size = call('ZCARD', key) - 1
          end
          before, members = size, size
        end
        if members < most then
          members = members + 1
        else
          call('ZREM', key, member)
          call('ZINCRBY', key, amount, OTHER)
        end
      end
    end
    if fresh then call('EXPIRE', key, life) end
    if members ~= before then
      local done, problem = pcall(note, hash, of, members)
      if not done then reject_unkept(at, problem) end
    end
  end

  for at = i, i + keys - 1, step do
    local last = a + 1 + 2 * tonumber(ARGV[a + 1])
    local done, reason = pcall(add, at, tonumber(ARGV[a]), a + 2, last)
    if reason then reject(at + 1, reason) end
    a = last + 1
  end
end
