-- seen: when something was seen first and last, with a sample of it.
-- Keys: hashes, field -> "FIRST LAST SAMPLE", times in Unix seconds.
-- A refused write is reported as unkept: no count is lost.
-- Arguments: seconds that a hash lives; about how many fields it keeps, those seen last; and for
--   each hash: how many fields, and of each: its name, first, last, sample; "" if unknown:
--   then the stored one stays.

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
  local life, most = ARGV[a], tonumber(ARGV[a + 1])
  a = a + 2

  local function see(key, first_arg, last_arg)
    for at = first_arg, last_arg, 4 do
      local name, first, last, sample = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
      local began, ended, old_first, old_last, old_sample = parts(call('HGET', key, name))
      if began and began < tonumber(first) then first = old_first end
      if ended and ended > tonumber(last) then
        last, sample = old_last, old_sample
      elseif sample == '' then
        sample = old_sample or ''
      end
      call('HSET', key, name, first .. ' ' .. last .. ' ' .. sample)
    end
    if call('HLEN', key) > 1.5 * most then keep_newest(key, most) end
    call('EXPIRE', key, life)
  end

  for key = i, i + keys - 1 do
    local last = a + 4 * tonumber(ARGV[a])
    local done, problem = pcall(see, KEYS[key], a + 1, last)
    if not done then reject_unkept(key, problem) end
    a = last + 1
  end
end
