-- moments: merge count, sum and spread into intervals.
-- Keys: a hash for each interval, no index: each belongs to one of hist.
-- Arguments: runs with "COUNT TOTAL M2" for each interval.
-- A stored text that is not of this form counts as empty.

-- The largest double: sums stop there.
local LARGEST = 1.7976931348623157e308

local function held(x)
  return x > LARGEST and LARGEST or x < -LARGEST and -LARGEST or x
end

-- Merge count, total and m2 of a delta into a stored text of these three, as texts.
-- A stored text that is missing or not of the form counts as none.
-- Chan, Golub and LeVeque 1979: what two sets differ by is what their means differ by.
local function merge_moments(stored, delta)
  local n1, t1, q1 = string.match(stored or '', '^(%d+) ([-+.%de]+) ([-+.%de]+)$')
  n1, t1, q1 = tonumber(n1 or ''), tonumber(t1 or ''), tonumber(q1 or '')
  local n2, t2, q2 = string.match(delta, '^([^ ]+) ([^ ]+) ([^ ]+)$')
  n2, t2, q2 = tonumber(n2), tonumber(t2), tonumber(q2)
  if not n1 or not t1 or not q1 or n1 < 1 or t1 - t1 ~= 0 or q1 - q1 ~= 0 then
    n1, t1, q1 = 0, 0, 0
  end
  local n = n1 + n2
  if n1 > 0 then
    local apart = t2 / n2 - t1 / n1
    q2 = q1 + q2 + apart * apart * (n1 * n2 / n)
  end
  return string.format('%.0f %.17g %.17g', n, held(t1 + t2), held(q2))
end

function operations.moments(i, keys, a)
  local family = {expire = true, shared = false}

  local function merge(key, start, text)
    local stored = attempt('HGET', key, start)
    if type(stored) == 'table' then return stored end
    stored = attempt('HSET', key, start, merge_moments(stored, text))
    return stored == 1 or type(stored) == 'table' and stored
  end

  write_slices(i, i + keys - 1, ARGV[a], family, merge)
end
