-- stat: merge statistics into sorted sets that are kept by the hour.
-- Keys: four for each, see hourly.lua; six without a prefix.
-- Arguments: seconds that they live; 1: return the resulting count, sum and sumsq; the number of
--   keys for each; and for each: the hour, count, min, max, sum, sumsq, mean, m2.
-- Statistics cover two hours: values of an older hour are skipped, and so are those after the next
--   hour; this is not reported, since the histograms have them. THIS_HOUR is the current hour.
-- Members: min, max, count, sum, sumsq, as other programs keep them; and n, mean, m2 of the
--   values written here, merged by Chan's formula: the others lose all digits where values are large and close
--   together. Nothing becomes infinite: it stops at the largest double.

local THIS_HOUR = 2 ^ 40

local LARGEST = 1.7976931348623157e308

local function exact(n)
  return string.format('%.17g', math.max(-LARGEST, math.min(LARGEST, n)))
end

function operations.stat(i, keys, a)
  local life, answer, step = ARGV[a], ARGV[a + 1] == '1', tonumber(ARGV[a + 2])
  a = a + 3

  local function merge(at, hour, count, low, high, sum, sumsq, mean, m2)
    if hour > this_hour + HOUR and hour < THIS_HOUR then return end
    local key, fresh = hourly(at, hour, life, step == 6 and at + 4, false)
    if not key then return not refuse and 'aged' or nil end
    local old = call('ZMSCORE', key, 'min', 'max', 'count', 'sum', 'sumsq', 'n', 'mean', 'm2')
    for k = 1, 8 do old[k] = tonumber(old[k] or '') end
    local n = old[7] and old[8] and old[6] or 0
    if n > 0 then
      local delta = mean - old[7]
      m2 = old[8] + m2 + delta * delta * (n / (n + count)) * count
      mean = old[7] + delta * (count / (n + count))
    end
    local counted = whole((old[3] or 0) + count)
    sum, sumsq = exact((old[4] or 0) + sum), exact((old[5] or 0) + sumsq)
    call('ZADD', key, exact(math.min(old[1] or low, low)), 'min',
      exact(math.max(old[2] or high, high)), 'max', counted, 'count', sum, 'sum', sumsq, 'sumsq',
      whole(n + count), 'n', exact(mean), 'mean', exact(m2), 'm2')
    if fresh then call('EXPIRE', key, life) end
    if answer then reject(at, 'is ' .. counted .. ' ' .. sum .. ' ' .. sumsq) end
  end

  for at = i, i + keys - 1, step do
    local values = {}
    for k = 0, 7 do values[k + 1] = tonumber(ARGV[a + k]) end
    local done, reason = pcall(merge, at, unpack(values))
    if reason then reject(at, reason) end
    a = a + 8
  end
end
