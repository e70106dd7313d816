-- last: set intervals of gauges' hashes, unless the stored value is newer.
-- Keys: gauges:, a hash for each interval.
-- Arguments: bytes of a key before its entry in the index; runs with "value time" for each interval.
-- No other program writes gauges, and they always expire.

-- Return whether an interval has a value that is newer than a time. A text that is no "value time" of
-- this interval is no value.
local function newer(stored, width, start, time)
  local value, at = string.match(stored, '^([-+.%de]+) ([-+.%de]+)$')
  value, at = tonumber(value or ''), tonumber(at or '')
  if not value or not at or value - value ~= 0 then return false end
  return at > time and at >= start and at < start + width
end

function operations.last(i, keys, a)
  local family = {index = KEYS[i], before = ARGV[a], expire = true, shared = false}

  local function set(key, start, text, width)
    local stored = attempt('HGET', key, start)
    if type(stored) == 'table' then return stored end
    local time = tonumber(string.match(text, ' (.*)'))
    if stored and newer(stored, width, tonumber(start), time) then return false end
    stored = attempt('HSET', key, start, text)
    return stored == 1 or type(stored) == 'table' and stored
  end

  write_slices(i + 1, i + keys - 1, ARGV[a + 1], family, set)
end
