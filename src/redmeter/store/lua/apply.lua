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
  local applied, told = string.match(watermark, '^(%d+) ?(.*)$')
  if tonumber(applied) == number and told ~= '' then return cjson.decode(told) end
  if tonumber(applied) >= number then return 0 end
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

-- What the hashes of a kind share. Counters may be other programs' too, gauges are ours alone:
-- those always expire. `due` lists the operations whose index entry is to be written.
local counters = {
  index = KEYS[3], before = ARGV[8] + 1, expire = ARGV[10] == '1', shared = true, due = {},
}
local gauges = {index = KEYS[4], before = ARGV[9] + 1, expire = true, shared = false, due = {}}

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

-- Most texts of numbers come many times within a batch, and a look into a table is cheaper.
local numbers = setmetatable({}, {__index = function(known, text)
  known[text] = tonumber(text)
  return known[text]
end})

-- When a life of so many seconds ends, Unix milliseconds: the server turns every other way to say
-- it into this one, at some cost.
local function expiry(life) return whole((server + life) * 1000) end

-- What a precision means for this batch, worked out once: it comes with each operation.
local rules = {}

local function make_rule(precision, samples)
  local width, count = tonumber(precision), tonumber(samples)
  local life, spare = (count + 1) * width, math.ceil(count * width / 8)
  local rule = {
    samples_text = samples, width = width, samples = count, kept = width * count,
    oldest_end = now - width * count,
    newest_gone = math.floor(now / width) * width - width * count,
    life = life, spare = spare, expiry = expiry(life + spare),
  }
  rules[precision] = rule
  return rule
end

-- The slices of a run: their starts as text, which of them are refused and why, and how long a
-- hash with the newest of them has to live.
local function make_run(rule, text)
  local starts, why, newest = {}, {}, -math.huge
  for start in string.gmatch(text, '-?%d+') do
    local n, from = #starts + 1, tonumber(start)
    starts[n], why[n] = start, false
    if refuse and from + rule.width < rule.oldest_end then
      why[n] = 'aged'
    elseif refuse and from - server > rule.kept then
      why[n] = 'future'
    elseif from > newest then
      newest = from
    end
  end
  local ahead = newest > server and math.ceil(newest - server) or 0
  return {
    starts = starts, why = why, rule = rule, life = rule.life + ahead,
    expiry = ahead == 0 and rule.expiry or expiry(rule.life + ahead + rule.spare),
  }
end

-- How many slices of the hash at hand are new.
local appended = 0

-- In a large batch one in SKIPPED hashes that have a new slice is trimmed, another one each time:
-- asking how many fields there are costs as much as writing one.
local SKIPPED = 4
local trim_all, turn = #KEYS < 64, tonumber(time[2])

-- Remove what has left the retention. Usually that is what went out lately; a series with pauses
-- leaves others behind, which are looked for when there are too many. Hashes past 512 fields were
-- written by others and are the cleaner's: this call must stay short.
local function trim_hash(key, rule)
  local fields = call('HLEN', key)
  if fields <= rule.samples or fields > 512 then return end
  local last, gone = rule.newest_gone, rule.gone
  if not gone then
    gone = {}
    for age = 1, 2 * SKIPPED do gone[age] = whole(last - (age - 1) * rule.width) end
    rule.gone = gone
  end
  if call('HDEL', key, unpack(gone)) + rule.samples + 2 >= fields then return end
  gone = {}
  for _, start in ipairs(call('HKEYS', key)) do
    local n = tonumber(start)
    if n and n <= last then gone[#gone + 1] = start end
  end
  if #gone > 0 then call('HDEL', key, unpack(gone)) end
end

-- Whether the hashes up to KEYS[asked] are new: asked for many at once, and no more after the first
-- that is not. What is new need not be asked how many fields it has, nor how long it lives.
local all_new, asked = true, 0

local function ask_ahead(i, last)
  asked = math.min(i + 31, last)
  all_new = attempt('EXISTS', unpack(KEYS, i, asked)) == 0
end

-- A hash has new slices: renew how long it lives, and its entry in the index. That is done with
-- an eighth to spare, so that it is seldom needed. May fail: see settle().
local function renew(i, key, family, run)
  local due = true
  if family.expire then
    local ttl = all_new and -1 or call('TTL', key)
    due = ttl < run.life
    -- A hash that had data but no time to live is another program's, which would not renew it: it
    -- stays without, and is the cleaner's to sweep.
    local foreign = ttl == -1 and not all_new and family.shared and call('HLEN', key) > appended
    if due and not foreign then call('PEXPIREAT', key, run.expiry) end
  end
  if due then family.due[#family.due + 1] = i end
  if trim and not all_new and (trim_all or (turn + i) % SKIPPED == 0) then
    trim_hash(key, run.rule)
  end
end

-- Write the index entries that are due, many at once: that is cheaper by half than one by one.
local function write_index(family)
  local due, before, most = family.due, family.before, 1000  -- unpack takes some thousands
  for first = 1, #due, most do
    local entries, last = {}, math.min(first + most - 1, #due)
    for at = first, last do
      local n = 2 * (at - first)
      entries[n + 1], entries[n + 2] = '0', string.sub(KEYS[due[at]], before)
    end
    local done = attempt('ZADD', family.index, unpack(entries))
    if type(done) == 'table' then
      for at = first, last do reject_unkept(due[at], done) end
    end
  end
end

-- Go through the runs of a text. What writes a slice is given its key, its start and its value, and
-- returns true where the slice is new, or the error that came back.
local function write_slices(i, count, text, values, family, write)
  local last = i + count - 1
  for precision, samples, starts, list in string.gmatch(text, '(%d+) (%d+) ([^:]*):([^;]*);') do
    local rule = rules[precision]
    if not rule or rule.samples_text ~= samples then rule = make_rule(precision, samples) end
    local run = make_run(rule, starts)
    local many, k = #run.starts, 0
    for one, other in string.gmatch(list, values) do
      k = k + 1
      local key, why = KEYS[i], run.why[k]
      if all_new and i > asked then ask_ahead(i, last) end
      if why then
        reject(i, why)
      else
        local new = write(key, run.starts[k], one, other, rule)
        if new == true then
          appended = appended + 1
        elseif new then
          reject(i, new.err)
        end
      end
      if k == many then  -- all slices of this hash
        if appended > 0 then
          local done, problem = pcall(renew, i, key, family, run)
          if not done then reject_unkept(i, problem) end
          appended = 0
        end
        k = 0
      end
      i = i + 1
    end
  end
  return i
end

local runs = {}

local function add(key, start, amount)
  local value = attempt('HINCRBY', key, start, amount)
  return value == numbers[amount] or type(value) == 'table' and value
end

function runs.slice(i, a, count)
  return write_slices(i, count, ARGV[a], '(-?%d+)', counters, add), a + 1
end

-- Whether a slice holds a value that is newer than a time. What is no "value time" of this slice
-- is nobody's value.
local function newer(stored, rule, start, time)
  local value, at = string.match(stored, '^([-+.%de]+) ([-+.%de]+)$')
  value, at = tonumber(value or ''), tonumber(at or '')
  if not value or not at or value - value ~= 0 then return false end
  return at > time and at >= start and at < start + rule.width
end

local function set(key, start, value, time, rule)
  local stored = attempt('HGET', key, start)
  if type(stored) == 'table' then return stored end
  if stored and newer(stored, rule, tonumber(start), tonumber(time)) then return false end
  stored = attempt('HSET', key, start, value .. ' ' .. time)
  return stored == 1 or type(stored) == 'table' and stored
end

function runs.last(i, a, count)
  return write_slices(i, count, ARGV[a], '([^ ]+) ([^ ]+)', gauges, set), a + 1
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
write_index(counters)
write_index(gauges)

if #reply == 1 then return 1 end
-- Should this answer get lost, the next try shall be told the same.
attempt('SET', KEYS[1], ARGV[1] .. ' ' .. cjson.encode(reply), 'EX', ARGV[2])
return reply
