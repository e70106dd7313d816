-- Apply one batch, exactly once.
--
-- The batch's number is compared with the highest one that its producer has had applied (the
-- watermark). Not higher: applied already, which is success. So a batch may be sent again after
-- a lost reply or a timeout, by anyone, and counts once. What was not applied of the last one
-- stands behind its number, for whoever asks again.
--
-- KEYS[1]  watermark of the producer        KEYS[2]  meta:
-- KEYS[3]  known:                           KEYS[4]  gauges:
-- KEYS[5…] one data key for each operation, in the order of the operations
-- ARGV[1]  number of the batch              ARGV[2]  how long the watermark is kept, seconds
-- ARGV[3]  the producer's clock, Unix seconds
-- ARGV[4]  version of meta: the batch was made for; "" does not look
-- ARGV[5]  1: a watermark must exist (a retry by a producer that was acknowledged before)
-- ARGV[6]  1: refuse slices that are aged or far in the future
-- ARGV[7]  1: trim what has left the retention
-- ARGV[8]  bytes of a counter's key before its entry in known:
-- ARGV[9]  bytes of a gauge's key before its entry in gauges:
-- ARGV[10] 1: counters that are made here expire; otherwise a cleaner sweeps them
-- ARGV[11…] runs of operations: code, how many, then their arguments
--   slice  add to slices of counters' hashes; one text of runs
--          "precision samples start start …:amount amount …;", in which hashes that have the same
--          slices follow each other, each with an amount for every start: kinds/slices.py
--   last   set slices of gauges' hashes, unless what is there is newer; a text of the same form,
--          with "value time" for each amount
--   add    add to fields of hashes; field, amount for each
--
-- Returns 1 applied · 0 applied before · -1 made for another meta: · -2 nobody can know ·
--   or {1, i, reason, i, reason …}: applied but for the operations of KEYS[i]. A reason is
--   aged, future, the server's error, or "unkept ERROR": written, but its index entry or its time
--   to live could not be renewed.
-- Numbers travel as text: Lua's are doubles and lose whole numbers past 2^53.
-- Cost: 1 µs an operation, 3 to 4 µs where a slice is new; callers send about 500.
-- Retry: safe, that is the point. Cluster: all keys of one partition share a slot.

local call, attempt, type, KEYS = redis.call, redis.pcall, type, KEYS
local number = tonumber(ARGV[1])
local watermark = call('GET', KEYS[1])
if watermark then
  local applied, told = tonumber(watermark), nil
  if not applied then
    applied, told = string.match(watermark, '^(%d+) (.*)$')
    applied = tonumber(applied)
  end
  if told and applied == number then return cjson.decode(told) end
  if applied >= number then return 0 end
elseif ARGV[5] == '1' then
  return -2
end
if ARGV[4] ~= '' and call('HGET', KEYS[2], 'version') ~= ARGV[4] then return -1 end

-- The watermark goes first, by a command that is refused when memory is out, on a replica and so
-- on: then nothing at all has been written, and the same batch may come again. After it, scripts
-- do not roll back, so no operation may end the script: what may fail runs under pcall.
call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])

local time = call('TIME')
local server = time[1] + time[2] / 1000000
-- The earlier of the two clocks: neither of them, running ahead, can push out live samples.
local now = math.min(server, tonumber(ARGV[3]))
local refuse, trim = ARGV[6] == '1', ARGV[7] == '1'
local reply = {1}

local function reject(i, reason)
  reply[#reply + 1] = i
  reply[#reply + 1] = reason
end

local unkept = {}  -- operations of which that has been told

local function reject_unkept(i, problem)
  if unkept[i] then return end
  unkept[i] = true
  reject(i, 'unkept ' .. (type(problem) == 'table' and problem.err or problem))
end

local function whole(n) return string.format('%.0f', n) end

-- When a life of so many seconds ends, Unix milliseconds: the server turns every other way to say
-- it into this one, at some cost.
local expiries = {}

local function expiry(life)
  local text = expiries[life]
  if not text then
    text = whole((server + life) * 1000)
    expiries[life] = text
  end
  return text
end

-- Large batches are flushes of many series. There it pays to ask many keys at once whether they are
-- new, and to trim one in SKIPPED hashes that have a single new slice, another one each time: asking
-- how many fields there are costs as much as writing one.
local large, SKIPPED, turn = #KEYS >= 64, 4, tonumber(time[2])

-- The slices of a precision that went out lately, the newest first.
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

-- Remove what has left the retention. Usually that is what went out lately; a series with pauses
-- leaves others behind, which are looked for when there are too many. Hashes past 512 fields were
-- written by others and are the cleaner's: this call must stay short.
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

-- Whether the hashes up to KEYS[asked] are new: asked for many at once, and no more after the first
-- that is not. What is new need not be asked how many fields it has, nor how long it lives.
local all_new, asked = large, 0

local function ask_ahead(i, last)
  asked = math.min(i + 31, last)
  all_new = attempt('EXISTS', unpack(KEYS, i, asked)) == 0
end

-- A hash has new slices, so many of them, up to the newest: renew how long it lives, and its entry in
-- the index. That is done with an eighth to spare, so that it is seldom needed. May fail.
local function renew(i, key, family, width, samples, appended, newest)
  local due = true
  if family.expire then
    local life = (samples + 1) * width
    if newest > server then life = life + math.ceil(newest - server) end
    local ttl = all_new and -1 or call('TTL', key)
    due = ttl < life
    -- A hash that had data but no time to live is another program's, which would not renew it: it
    -- stays without, and is the cleaner's to sweep.
    local foreign = ttl == -1 and not all_new and family.shared and call('HLEN', key) > appended
    if due and not foreign then
      call('PEXPIREAT', key, expiry(life + math.ceil(samples * width / 8)))
    end
  end
  if due then family.due[#family.due + 1] = i end
  local turn_to_trim = not large or appended > 1 or (turn + i) % SKIPPED == 0
  if trim and not all_new and turn_to_trim then
    trim_hash(key, width, samples)
  end
end

-- Write the index entries that are due, many at once: that is cheaper by half than one by one.
local function write_index(family)
  local due, most = family.due, 1000  -- unpack takes some thousands
  for first = 1, #due, most do
    local entries, last = {}, math.min(first + most - 1, #due)
    for at = first, last do
      local n = 2 * (at - first)
      entries[n + 1], entries[n + 2] = '0', string.sub(KEYS[due[at]], family.before + 1)
    end
    local done = attempt('ZADD', family.index, unpack(entries))
    if type(done) == 'table' then
      for at = first, last do reject_unkept(due[at], done) end
    end
  end
end

local function outside(start, width, samples)
  if start + width < now - width * samples then return 'aged' end
  if start - server > width * samples then return 'future' end
end

local function split(text)
  local words = {}
  for word in string.gmatch(text, '[^ ]+') do words[#words + 1] = word end
  return words
end

-- Go through the runs of a text. A family is what the hashes of a kind share; its `due` lists the
-- operations whose index entry is to be written. What writes a slice is given its key, its start and what there is
-- to write, and returns true where the slice is new, or the error that came back.
local function write_slices(i, count, text, each, family, write)
  local last = i + count - 1
  -- Of the run at hand: its starts, where there is more than one, which of them are refused and
  -- why, the newest of the others; and of the hash at hand: its slices so far, and the new ones.
  local width, samples, list, starts, many, why, newest
  local k, appended = 0, 0

  local function slice(one, other)
    k = k + 1
    local key = KEYS[i]
    if all_new and i > asked then ask_ahead(i, last) end
    if why and why[k] then
      reject(i, why[k])
    else
      local new = write(key, starts and starts[k] or list, one, other, width)
      if new == true then
        appended = appended + 1
      elseif new then
        reject(i, new.err)
      end
    end
    if k == many then
      if appended > 0 then
        local done, problem = pcall(renew, i, key, family, width, samples, appended, newest)
        if not done then reject_unkept(i, problem) end
      end
      k, appended = 0, 0
    end
    i = i + 1
  end

  for precision, kept, heads, values in string.gmatch(text, '(%d+) (%d+) ([^:]*):([^;]*);') do
    width, samples, list = tonumber(precision), tonumber(kept), heads
    starts = string.find(list, ' ', 1, true) and split(list)
    many, why, newest = starts and #starts or 1, nil, -math.huge
    for n = 1, many do
      local start = tonumber(starts and starts[n] or list)
      local reason = refuse and outside(start, width, samples)
      if reason then
        why = why or {}
        why[n] = reason
      elseif start > newest then
        newest = start
      end
    end
    if string.find(values, ' ', 1, true) then
      for one, other in string.gmatch(values, each) do slice(one, other) end
    else
      slice(values)
    end
  end
  write_index(family)
  return i
end

local runs = {}

-- Counters may be other programs' too; those without a time to live are theirs.
function runs.slice(i, a, count)
  local family = {
    index = KEYS[3], before = ARGV[8], expire = ARGV[10] == '1', shared = true, due = {},
  }
  local function add(key, start, amount)
    local value = attempt('HINCRBY', key, start, amount)
    return value == tonumber(amount) or type(value) == 'table' and value
  end
  return write_slices(i, count, ARGV[a], '(-?%d+)', family, add), a + 1
end

-- Gauges are ours alone, and always expire.
function runs.last(i, a, count)
  local family = {index = KEYS[4], before = ARGV[9], expire = true, shared = false, due = {}}

  -- Whether a slice holds a value that is newer than a time. What is no "value time" of this slice
  -- is nobody's value.
  local function newer(stored, width, start, time)
    local value, at = string.match(stored, '^([-+.%de]+) ([-+.%de]+)$')
    value, at = tonumber(value or ''), tonumber(at or '')
    if not value or not at or value - value ~= 0 then return false end
    return at > time and at >= start and at < start + width
  end

  local function set(key, start, value, time, width)
    local stored = attempt('HGET', key, start)
    if type(stored) == 'table' then return stored end
    if stored and newer(stored, width, tonumber(start), tonumber(time)) then return false end
    stored = attempt('HSET', key, start, value .. ' ' .. time)
    return stored == 1 or type(stored) == 'table' and stored
  end

  return write_slices(i, count, ARGV[a], '([^ ]+) ([^ ]+)', family, set), a + 1
end

function runs.add(i, a, count)
  for j = i, i + count - 1 do
    local value = attempt('HINCRBY', KEYS[j], ARGV[a], ARGV[a + 1])
    if type(value) == 'table' then reject(j, value.err) end
    a = a + 2
  end
  return i + count, a
end

local i, a, last = 5, 11, #ARGV
while a <= last do
  i, a = runs[ARGV[a]](i, a + 2, tonumber(ARGV[a + 1]))
end

if #reply == 1 then return 1 end
-- Should this answer get lost, the next try shall be told the same.
attempt('SET', KEYS[1], ARGV[1] .. ' ' .. cjson.encode(reply), 'EX', ARGV[2])
return reply
