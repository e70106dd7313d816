-- tally: add to members of sorted sets that are kept by the hour, up to so many members of each.
-- Keys: four for each, see hourly.lua.
-- Arguments: seconds that they live; most members; and for each: the hour, how many pairs, and
--   these: member, amount. What comes after the last member is added to "(other)".

local OTHER = '(other)'

function operations.tally(i, keys, a)
  local life, most = ARGV[a], tonumber(ARGV[a + 1])
  a = a + 2

  local function add(at, hour, first, last)
    local key, fresh = hourly(at, hour, life)
    if not key then return 'aged' end
    local members = call('ZCARD', key)
    for pair = first, last, 2 do
      local member = ARGV[pair]
      if members >= most and member ~= OTHER and not call('ZSCORE', key, member) then
        member = OTHER
      end
      if call('ZINCRBY', key, ARGV[pair + 1], member) == ARGV[pair + 1] then
        members = members + 1
      end
    end
    if fresh then call('EXPIRE', key, life) end
  end

  for at = i, i + keys - 1, 4 do
    local last = a + 1 + 2 * tonumber(ARGV[a + 1])
    local done, reason = pcall(add, at, tonumber(ARGV[a]), a + 2, last)
    if reason then reject(at, reason) end
    a = last + 1
  end
end
