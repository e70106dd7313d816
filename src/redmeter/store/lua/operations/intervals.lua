-- Shared by operations on intervals: hashes interval start -> value, with a time to live, trimming
-- and, if a family has one, an index. The values are passed as JSON, in runs of four:
--   [precision, samples, [start, …], [value, …], …]
-- Hashes with the same intervals follow each other, each with a value for every start: see
-- stored/intervals.py. Their keys are the index, if there is one, and a hash for each interval.

-- Large batches are flushes of many series. There it pays to ask many keys at once whether they are
-- new, and to trim one in SKIPPED hashes with a single new interval, another one each time: HLEN
-- costs as much as writing a field.
local large, SKIPPED = #KEYS >= 64, 4

-- Whether the hashes up to KEYS[checked] are new: checked for many at once, until one is not. A new
-- hash needs no HLEN and no TTL.
local all_new, checked = large, 0

-- Hashes have new intervals: renew their times to live and index entries, and trim them. For each,
-- `opened` has: number of the key, whether the hash is new, precision, samples, number of new
-- intervals, the newest one that was written. Most batches of a single event need none of this.
local function keep(family, opened)
  local turn = tonumber(time[2])

  -- The end of a time to live, Unix milliseconds: the server converts every other form into this
  -- one, at some cost.
  local expiries = {}

  local function expiry(life)
    local text = expiries[life]
    if not text then
      text = whole((server + life) * 1000)
      expiries[life] = text
    end
    return text
  end

  -- The intervals of a precision that expired recently, the newest first.
  local lately = {}

  local function gone_lately(width, samples)
    local gone = lately[width]
    if not gone then
      gone = {}
      local last = math.floor(now / width) * width - samples * width
      for age = 1, large and 2 * SKIPPED or 1 do gone[age] = whole(last - (age - 1) * width) end
      lately[width] = gone
    end
    return gone
  end

  -- Remove expired intervals. Usually these expired recently; a series with pauses leaves others
  -- behind, which are searched when there are too many. Hashes past 512 fields were written by other
  -- programs and are left to the cleaner: this call must stay short.
  local function trim_hash(key, width, samples)
    local fields = call('HLEN', key)
    if fields <= samples or fields > 512 then return end
    local gone = gone_lately(width, samples)
    if call('HDEL', key, unpack(gone)) + samples + 2 >= fields then return end
    local last, others = tonumber(gone[1]), {}
    for _, start in ipairs(call('HKEYS', key)) do
      local n = tonumber(start)
      if n and n <= last then others[#others + 1] = start end
    end
    if #others > 0 then call('HDEL', key, unpack(others)) end
  end

  -- Keys whose index entry must be written: together with each renewal of the time to live, which has
  -- a margin of an eighth, so that it is rare.
  local due = {}

  local function renew(i, new, width, samples, appended, newest)
    local key, needed = KEYS[i], true
    if family.expire then
      local life = (samples + 1) * width
      if newest > server then life = life + math.ceil(newest - server) end
      local ttl = new and -1 or call('TTL', key)
      needed = ttl < life
      -- A hash that had data but no time to live is another program's, which would not renew it: it
      -- stays without, and is the cleaner's to sweep.
      local foreign = ttl == -1 and not new and family.shared and call('HLEN', key) > appended
      if needed and not foreign then
        call('PEXPIREAT', key, expiry(life + math.ceil(samples * width / 8)))
      end
    end
    if needed then due[#due + 1] = i end
    local turn_to_trim = not large or appended > 1 or (turn + i) % SKIPPED == 0
    if trim and not new and turn_to_trim then trim_hash(key, width, samples) end
  end

  for at = 1, #opened, 6 do
    local done, problem = pcall(renew, unpack(opened, at, at + 5))
    if not done then reject_unkept(opened[at], problem) end
  end

  -- Many at once: that is cheaper by half than one by one.
  local most = 1000  -- unpack takes some thousands
  for first = 1, family.index and #due or 0, most do
    local entries, last = {}, math.min(first + most - 1, #due)
    for at = first, last do
      local n = 2 * (at - first)
      entries[n + 1], entries[n + 2] = '0', string.sub(KEYS[due[at]], family.before + 1)
    end
    local done = attempt('ZADD', family.index, unpack(entries))
    if type(done) == 'table' then
      local problem = family.index .. ': ' .. done.err
      for at = first, last do reject_unkept(due[at], problem) end
    end
  end
end

-- Return why a start is rejected, or nil.
local function outside(start, width, samples)
  if not refuse then return end
  if start + width < now - width * samples then return 'aged' end
  if start - server > width * samples then return 'future' end
end

-- Return the reasons by index of the rejected starts of a run, or nil; and the newest accepted one.
local function judged(starts, width, samples)
  local why, newest = nil, -math.huge
  for k, text in ipairs(starts) do
    local start = tonumber(text)
    local reason = outside(start, width, samples)
    if reason then
      why = why or {}
      why[k] = reason
    elseif start > newest then
      newest = start
    end
  end
  return why, newest
end

-- Return why a hash is not written in a full store, or nil.
local function is_full(family, key)
  local entry = string.sub(key, family.before + 1)
  local new
  if family.index then
    new = is_refused(family.kind, family.index, entry)
  else  -- its index was asked before
    new = refused[family.kind .. string.match(entry, ':(.*)$')]
  end
  return new and 'store-full' or nil
end

-- Write runs to the keys from KEYS[i] to KEYS[last]. A family has the properties of a kind's hashes.
-- `write` gets key, start, value and width of an interval, and returns true if it is new, or an error.
local function write_slices(i, last, text, family, write)
  local runs, opened = cjson.decode(text), {}
  for at = 1, #runs, 4 do
    local width, samples, starts, values = runs[at], runs[at + 1], runs[at + 2], runs[at + 3]
    local why, newest = judged(starts, width, samples)
    local many = #starts
    for first = 0, #values - 1, math.max(many, 1) do  -- a hash
      local appended = 0
      for k = 1, many do
        if all_new and i > checked then
          checked = math.min(i + 31, last)
          all_new = attempt('EXISTS', unpack(KEYS, i, checked)) == 0
        end
        local reason = why and why[k] or full and is_full(family, KEYS[i])
        if reason then
          reject(i, reason)
        else
          local new = write(KEYS[i], starts[k], values[first + k], width)
          if new == true then
            appended = appended + 1
          elseif new then
            reject(i, new.err)
          end
        end
        i = i + 1
      end
      if appended > 0 then
        local n = #opened
        opened[n + 1], opened[n + 2], opened[n + 3] = i - 1, all_new, width
        opened[n + 4], opened[n + 5], opened[n + 6] = samples, appended, newest
      end
    end
  end
  if #opened > 0 then keep(family, opened) end
end

-- slice(): add to intervals of counters' hashes.
-- Keys: known:, a hash for each interval.
-- Arguments: bytes of a key before its entry in the index; 1: hashes that are made here expire,
--   otherwise a cleaner removes them; runs with an amount for each interval.
-- Other programs write counters, too: those without a time to live are theirs.

function operations.slice(i, keys, a)
  local family = {
    kind = 'counter ', index = KEYS[i], before = ARGV[a], expire = ARGV[a + 1] == '1',
    shared = true,
  }
  local function add(key, start, amount)
    local value = attempt('HINCRBY', key, start, amount)
    return value == tonumber(amount) or type(value) == 'table' and value
  end
  write_slices(i + 1, i + keys - 1, ARGV[a + 2], family, add)
end

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
  local family = {
    kind = 'gauge ', index = KEYS[i], before = ARGV[a], expire = true, shared = false,
  }

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

-- add: add to fields of one hash.
-- Keys: the hash, once for each field. Arguments: field, amount for each.

function operations.add(i, keys, a)
  for key = i, i + keys - 1 do
    if refused['counter ' .. ARGV[a]] then
      reject(key, 'store-full')
    else
      local value = attempt('HINCRBY', KEYS[key], ARGV[a], ARGV[a + 1])
      if type(value) == 'table' then reject(key, value) end
    end
    a = a + 2
  end
end
