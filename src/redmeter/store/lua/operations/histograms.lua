-- hist: merge the buckets of distributions into intervals.
-- Keys: hists:, a hash for each interval.
-- Arguments: bytes of a key before its entry in the index; runs with a text of buckets for each
--   interval: "LOW|HIGH|ZEROS|POSITIVE|NEGATIVE", see stored/packed_text.py.
-- A stored text that is not of this form counts as empty, as far as it is parsed here; readers parse
--   all of it. No other program writes histograms, and they always expire.
-- Cost: by the delta and by the part of the stored text between the lowest and highest bucket of the
--   delta, 25 to 80 µs for 1 to 75 buckets; the rest is copied.

local find, sub, match, format = string.find, string.sub, string.match, string.format
local concat, tonumber = table.concat, tonumber

-- Whole numbers as texts, as far as they were needed: many counts are small and come again.
local whole_texts = {}

local function whole_text(n)
  local text = whole_texts[n]
  if not text then
    text = format('%.0f', n)
    whole_texts[n] = text
  end
  return text
end

-- Of runs: the buckets that hold something, ascending, and their counts as texts. The index of a
-- run that is not of the form is nil, which ends the merging with an error: see merge_buckets().
-- The same runs come again at each precision, and are taken apart once.
local taken_apart = {}

local function buckets_of(runs)
  local known = taken_apart[runs]
  if known then return known[1], known[2] end
  local indexes, counts, size = {}, {}, 0
  for head, tail in string.gmatch(runs, '([^=/]*)=([^/]*)') do
    local index = tonumber(head)
    for count in string.gmatch(tail, '%d+') do
      if count ~= '0' then
        size = size + 1
        indexes[size], counts[size] = index, count
      end
      index = index + 1
    end
  end
  taken_apart[runs] = {indexes, counts}
  return indexes, counts
end

-- Sixteen counts, each with its comma: skips them in one call.
local SIXTEEN = '^' .. string.rep('%d*,', 16)

-- Add runs of a delta to those that are stored.
local function merge_runs(stored, delta)
  if stored == '' or delta == '' then return stored .. delta end
  local indexes, counts = buckets_of(delta)
  local d, target = 1, indexes[1]
  -- Runs that are written, the one at hand, and the bucket after its last one, which nobody asks for
  -- once the delta is used up.
  local runs, run, size, after = {}, {}, 0, nil

  -- Write counts of a bucket, and of those that follow it up to another one.
  local function write(index, text, upto)
    local gap = after and index - after or 0
    if gap > 2 then
      runs[#runs + 1] = concat(run, ',', 1, size)
      size = 0
    elseif gap > 0 then
      run[size + 1], run[size + 2] = '0', '0'
      size = size + gap
    end
    size = size + 1
    run[size] = size == 1 and index .. '=' .. text or text
    after = upto
  end

  local from, last = 1, #stored
  local equals = find(stored, '=', 1, true)
  local index = tonumber(sub(stored, 1, equals - 1))
  while target and from <= last do
    local stop = find(stored, '/', equals, true) or last + 1
    from = equals + 1
    equals = find(stored, '=', stop, true)
    local following = equals and tonumber(sub(stored, stop + 1, equals - 1))
    while target and target < index do  -- before this run
      write(target, counts[d], target + 1)
      d = d + 1
      target = indexes[d]
    end
    if following and target and target >= following then  -- after it
      write(index, sub(stored, from, stop - 1), -math.huge)
      from = stop
    end
    while from < stop do
      -- What the delta does not touch goes over as it is: up to the bucket that it has next.
      local start, first = from, index
      if not target then from = stop + 1 end
      while target and target - index >= 16 do
        local _, skipped = find(stored, SIXTEEN, from)
        if not skipped then break end
        from, index = skipped + 1, index + 16
      end
      while from < stop and index ~= target do
        local comma = find(stored, ',', from, true)
        from, index = comma and comma < stop and comma + 1 or stop + 1, index + 1
      end
      if from > start then write(first, sub(stored, start, from - 2), index) end
      -- The buckets that it changes, as long as they are contiguous.
      while index == target and from < stop do
        local comma = find(stored, ',', from, true)
        if not comma or comma > stop then comma = stop end
        local sum = sub(stored, from, comma - 1) + counts[d]
        from, index, d = comma + 1, index + 1, d + 1
        target = indexes[d]
        write(index - 1, whole_texts[sum] or whole_text(sum), index)
      end
    end
    from, index = stop + 1, following
  end
  while target do
    write(target, counts[d], target + 1)
    d = d + 1
    target = indexes[d]
  end
  runs[#runs + 1] = concat(run, ',', 1, size)
  if from <= last then runs[#runs + 1] = sub(stored, from) end
  return concat(runs, '/')
end

local BUCKETS = '^([^|]*)|([^|]*)|(%d+)|([%d,=/-]*)|([%d,=/-]*)$'

-- Merge the buckets of a delta into those that are stored, both as texts.
-- A stored text that is missing or not of the form counts as none; the delta must be of the form.
local function merge_buckets(stored, delta)
  if not stored then return delta end
  local low, high, zeros, positive, negative = match(stored, BUCKETS)
  if not low then return delta end
  local d_low, d_high, d_zeros, d_positive, d_negative = match(delta, BUCKETS)
  local done, text = pcall(function()
    if d_low + 0 < low + 0 then low = d_low end
    if d_high + 0 > high + 0 then high = d_high end
    if d_zeros ~= '0' then zeros = whole_text(zeros + d_zeros) end
    return concat({low, high, zeros, merge_runs(positive, d_positive),
      merge_runs(negative, d_negative)}, '|')
  end)
  return done and text or delta
end

function operations.hist(i, keys, a)
  local family = {
    kind = 'histogram ', index = KEYS[i], before = ARGV[a], expire = true, shared = false,
  }

  local function merge(key, start, buckets)
    local stored = attempt('HGET', key, start)
    if type(stored) == 'table' then return stored end
    stored = attempt('HSET', key, start, merge_buckets(stored, buckets))
    return stored == 1 or type(stored) == 'table' and stored
  end

  write_slices(i + 1, i + keys - 1, ARGV[a + 1], family, merge)
end

-- moments: merge count, sum and spread into intervals.
-- Keys: a hash for each interval, no index: each belongs to one of hist.
-- Arguments: bytes of a key before its entry in that index; runs with "COUNT TOTAL M2" for each interval.
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
  local family = {kind = 'histogram ', before = ARGV[a], expire = true, shared = false}

  local function merge(key, start, text)
    local stored = attempt('HGET', key, start)
    if type(stored) == 'table' then return stored end
    stored = attempt('HSET', key, start, merge_moments(stored, text))
    return stored == 1 or type(stored) == 'table' and stored
  end

  write_slices(i, i + keys - 1, ARGV[a + 1], family, merge)
end

-- sums: merge into the grand totals of histograms.
-- Keys: sums: and spreads:, once for each name.
-- Arguments: name, "COUNT TOTAL M2", buckets for each.
-- The two fields of a name describe the same values: both are written, or neither. If one is missing
-- (another program removed it), both begin again.

function operations.sums(i, keys, a)
  for key = i, i + keys - 1, 2 do
    local name = ARGV[a]
    local moments = attempt('HGET', KEYS[key], name)
    local buckets = attempt('HGET', KEYS[key + 1], name)
    local problem = type(moments) == 'table' and moments or type(buckets) == 'table' and buckets
      or refused['histogram ' .. name] and 'store-full'
    if not problem then
      if not moments or not buckets then moments, buckets = nil, nil end
      local done = attempt('HSET', KEYS[key], name, merge_moments(moments, ARGV[a + 1]))
      if type(done) ~= 'table' then
        done = attempt('HSET', KEYS[key + 1], name, merge_buckets(buckets, ARGV[a + 2]))
      end
      problem = type(done) == 'table' and done
    end
    if problem then reject(key, problem) end
    a = a + 3
  end
end
