-- Apply one batch, exactly once.
--
-- The batch's number is compared with the producer's watermark, the highest number applied so far.
-- Not higher: it was applied already, which is success. So a batch can be sent again after a lost
-- reply or a timeout, by any process, and counts once. The reply to the last batch is stored after
-- its number, for a retry.
--
-- KEYS[1]  watermark of the producer        KEYS[2]  meta:
-- KEYS[3…] keys of the operations, one operation after the other
-- ARGV[1]  number of the batch              ARGV[2]  how long the watermark is kept, seconds
-- ARGV[3]  the producer's clock, Unix seconds
-- ARGV[4]  version of meta: that the batch was made for; "" skips the check
-- ARGV[5]  1: a watermark must exist (a retry by a producer that was acknowledged before)
--          2: it must be the floor (losses are counted after this batch)
-- ARGV[6]  1: refuse intervals that are aged or far in the future
-- ARGV[7]  1: trim samples outside the retention
-- ARGV[8]  floor: the number that the producer last had acknowledged here; 0 if that is too long ago
-- ARGV[9]  birth of the store that the producer last heard of; "" if of none
-- ARGV[10…] operations: code, number of keys, number of arguments, the arguments. The operations are
--   in operations/, and only those that a batch needs are in the script that applies it: see
--   scripts.py.
--
-- Returns 1 applied · 0 applied before · {-6, watermark or -1, birth of the store}: a gap, not applied,
--   since acknowledged batches are missing: the watermark is below the floor, or gone, or it is
--   another store · -1 made for another meta: · -2 outcome unknown ·
--   -3 frozen, -4 receiving, -5 moved: not applied, since the store is being moved or was moved ·
--   or {1, i, text, i, text …}: applied, with a result for KEYS[i]: "is …", a requested answer; or
--   the reason why a part was rejected: aged, future, store-full (a series that would be new, in a
--   store that full.lua has marked), the server's error, or "unkept ERROR":
--   written, but its index entry or its time to live could not be renewed.
-- Amounts and interval starts are sent as text: Lua's numbers are doubles, exact only below 2^53.
-- Cost: 1 µs per interval, 3 to 4 µs for a new one; callers send about 500.
-- Retry: safe, by design. Cluster: all keys of one shard share a slot.

local call, attempt, type, tonumber, KEYS, ARGV = redis.call, redis.pcall, type, tonumber, KEYS, ARGV
local number, floor = tonumber(ARGV[1]), tonumber(ARGV[8])
local watermark = call('GET', KEYS[1])
local applied
if watermark then
  local reply
  applied = tonumber(watermark)
  if not applied then
    applied, reply = string.match(watermark, '^(%d+) (.*)$')
    applied = tonumber(applied)
    if not applied then return redis.error_reply('WRONGTYPE a watermark is a number') end
  end
  if reply and applied == number then return cjson.decode(reply) end
  if applied >= number then return 0 end
elseif floor == 0 and ARGV[5] == '1' then
  return -2
end

-- Only now, so that a lost reply can be settled in any state of the store: see freeze.lua.
local meta = call('HMGET', KEYS[2], 'version', 'frozen', 'moved', 'receiving', 'full', 'born')
if meta[3] then return -5 end
if meta[4] then return -4 end
if meta[2] then
  local deadline = tonumber(string.match(meta[2], ' (%S+)$')) or 0
  local time = call('TIME')
  if time[1] + time[2] / 1000000 < deadline then return -3 end
  call('HDEL', KEYS[2], 'frozen')  -- else a clock that is set back would revive it
end
if ARGV[4] ~= '' and meta[1] ~= ARGV[4] then return -1 end
local known = applied or 0
if floor > known or ARGV[5] == '2' and floor ~= known or ARGV[9] ~= '' and ARGV[9] ~= (meta[6] or '') then
  call('HDEL', KEYS[2], '')  -- changes nothing, and fails on a replica, which may only be late
  return {-6, applied or -1, meta[6] or ''}
end

-- The watermark is written first, by a command that fails when memory is full, on a replica and so
-- on: then nothing at all has been written, and the batch can be retried. After it, scripts do not
-- roll back, so no operation may end the script: anything that can fail runs under pcall.
call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])

local time = call('TIME')
local server = time[1] + time[2] / 1000000
-- The earlier of the two clocks, so that neither can trim live samples by running ahead.
local now = math.min(server, tonumber(ARGV[3]))
local refuse, trim = ARGV[6] == '1', ARGV[7] == '1'
local reply, operations = {1}, {}

-- The error of a command or of pcall is a table or a text.
local function text_of(problem)
  return type(problem) == 'table' and problem.err or problem
end

local function reject(i, reason)
  reply[#reply + 1] = i
  reply[#reply + 1] = text_of(reason)
end

-- Data that is written but may expire early; reported once per key.
local unkept = {}

local function reject_unkept(i, problem)
  if unkept[i] then return end
  unkept[i] = true
  reject(i, 'unkept ' .. text_of(problem))
end

-- Whether a series would be new, in a store that is full: kind and name -> whether it is refused.
local full, refused = meta[5], {}

-- Return whether a series is refused. An index lists it by precision: an entry is "PRECISION:NAME".
local function is_refused(kind, index, entry)
  local name = string.match(entry, '^%d+:(.*)$') or entry
  local known = refused[kind .. name]
  if known == nil then
    local kept, entries = call('HMGET', KEYS[2], 'retention', 'histograms'), {entry}
    for precision in string.gmatch((kept[1] or '') .. ' ' .. (kept[2] or ''), '(%d+)=') do
      entries[#entries + 1] = precision .. ':' .. name
    end
    known = true
    for _, each in ipairs(entries) do  -- an error is another program's key: found when it is written
      if attempt('ZSCORE', index, each) then known = false end
    end
    refused[kind .. name] = known
  end
  return known
end

local function whole(n) return string.format('%.0f', n) end

-- Patterns without a place of their own: LOGGER:SEVERITY -> pattern -> the name that it counts under. Made
-- by the operation `steps`, for those after it.
local renamed = {}

-- operations --

local i, a, last = 3, 10, #ARGV
while a <= last do
  local keys, args = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  operations[ARGV[a]](i, keys, a + 3, args)
  i, a = i + keys, a + 3 + args
end

if #reply == 1 then return 1 end
-- If this reply is lost, the retry returns the same.
attempt('SET', KEYS[1], ARGV[1] .. ' ' .. cjson.encode(reply), 'EX', ARGV[2])
return reply
