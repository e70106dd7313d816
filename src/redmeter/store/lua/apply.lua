-- Apply one batch, exactly once.
--
-- The batch's number is compared with the highest one that its producer has had applied (the
-- watermark). Not higher: applied already, which is success. So a batch may be sent again after
-- a lost reply or a timeout, by anyone, and counts once.
--
-- KEYS[1]  watermark of the producer        KEYS[2]  meta:        KEYS[3]  known:
-- KEYS[4…] one data key for each operation, in the order of the operations
-- ARGV[1]  number of the batch              ARGV[2]  how long the watermark is kept, seconds
-- ARGV[3]  the producer's clock, Unix seconds
-- ARGV[4]  version of meta: the batch was made for; "" does not look
-- ARGV[5]  1: a watermark must exist (a retry by a producer that was acknowledged before)
-- ARGV[6]  1: refuse slices that are aged or far in the future
-- ARGV[7]  1: trim what has left the retention
-- ARGV[8]  bytes of a counter's key before its entry in known:
-- ARGV[9] 1: hashes that are made here expire; otherwise a cleaner sweeps them
-- ARGV[10…] runs of operations: code, how many, then their arguments
--   slice  add to slices of counters' hashes; one text of "precision samples start amount …"
--   add    add to fields of hashes; field, amount for each
--
-- Returns 1 applied · 0 applied before · -1 made for another meta: · -2 nobody can know ·
--   or {1, i, reason, i, reason …}: applied but for the operations of KEYS[i]. A reason is
--   aged, future, the server's error, or "unkept ERROR": added, but its index entry or its time
--   to live could not be renewed.
-- Numbers travel as text: Lua's are doubles and lose whole numbers past 2^53.
-- Cost: 1 µs an operation, 3 µs where a slice is new; callers send about 500.
-- Retry: safe, that is the point. Cluster: all keys of one partition share a slot.

local call = redis.call
local number = tonumber(ARGV[1])
local watermark = call('GET', KEYS[1])
if watermark then
  if tonumber(watermark) >= number then return 0 end
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
local refuse, trim, expire = ARGV[6] == '1', ARGV[7] == '1', ARGV[9] == '1'
local before = tonumber(ARGV[8])
local reply = {1}

local function reject(i, reason)
  reply[#reply + 1] = i
  reply[#reply + 1] = reason
end

-- Of the hash at hand: how many slices are new, and the newest start among them.
local appended, newest = 0, -math.huge

local function whole(n) return string.format('%.0f', n) end

-- Remove what has left the retention. Usually that is the one slice that just went out; a series
-- with pauses leaves others behind, which are looked for when there are too many. Hashes past
-- 512 fields were written by others and are the cleaner's: this call must stay short.
local function trim_hash(key, precision, samples)
  local fields = call('HLEN', key)
  if fields <= samples or fields > 512 then return end
  local newest_gone = math.floor(now / precision) * precision - samples * precision
  if call('HDEL', key, whole(newest_gone)) + samples + 2 >= fields then return end
  local gone = {}
  for _, start in ipairs(call('HKEYS', key)) do
    local n = tonumber(start)
    if n and n <= newest_gone then gone[#gone + 1] = start end
  end
  if #gone > 0 then call('HDEL', key, unpack(gone)) end
end

-- A hash has new slices: renew how long it lives, and its entry in the index. That is done with
-- an eighth to spare, so that it is seldom needed.
local function renew(key, precision, samples, newest)
  local ttl = expire and call('TTL', key)
  local wanted = (samples + 1) * precision + math.max(0, math.ceil(newest - server))
  if not expire or ttl < wanted then
    -- A hash that had data but no time to live is another program's, which would not renew it:
    -- it stays without, and is the cleaner's to sweep.
    if expire and (ttl >= 0 or call('HLEN', key) <= appended) then
      call('EXPIRE', key, whole(wanted + math.ceil(samples * precision / 8)))
    end
    call('ZADD', KEYS[3], 0, string.sub(key, before + 1))
  end
  if trim then trim_hash(key, precision, samples) end
end

-- The operations of one hash stand together, so that what is new is settled once.
local function add_to_slice(i, precision, samples, start, amount)
  local key = KEYS[i]
  local kept = precision * samples
  if refuse and start + precision < now - kept then
    reject(i, 'aged')
  elseif refuse and start - server > kept then
    reject(i, 'future')
  else
    local value = redis.pcall('HINCRBY', key, start, amount)
    if value == tonumber(amount) then
      appended = appended + 1
      newest = math.max(newest, tonumber(start))
    elseif type(value) == 'table' then
      reject(i, value.err)
    end
  end
  if appended > 0 and KEYS[i + 1] ~= key then
    local done, problem = pcall(renew, key, tonumber(precision), tonumber(samples), newest)
    if not done then reject(i, 'unkept ' .. (type(problem) == 'table' and problem.err or problem)) end
    appended, newest = 0, -math.huge
  end
end

local run = {}

-- One text is a third cheaper to send than a text for each number.
function run.slice(i, a)
  local each = '(%d+) (%d+) (-?%d+) (-?%d+)'
  for precision, samples, start, amount in string.gmatch(ARGV[a], each) do
    add_to_slice(i, precision, samples, start, amount)
    i = i + 1
  end
  return i, a + 1
end

function run.add(i, a, count)
  for j = i, i + count - 1 do
    local value = redis.pcall('HINCRBY', KEYS[j], ARGV[a], ARGV[a + 1])
    if type(value) == 'table' then reject(j, value.err) end
    a = a + 2
  end
  return i + count, a
end

local i, a, last = 4, 10, #ARGV
while a <= last do
  i, a = run[ARGV[a]](i, a + 2, tonumber(ARGV[a + 1]))
end

if #reply == 1 then return 1 end
return reply
