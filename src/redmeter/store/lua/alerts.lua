-- Change the state of alerts, under a lease that one evaluator holds.
--
-- KEYS[1] alerts:   hash: `lease` -> "EPOCH DEADLINE OWNER", `number` -> the last notice's number,
--                   `alert:NAME` -> its state, JSON with a `version`; `silence:ID` -> JSON;
--                   `rules`, `report`: JSON that the evaluator publishes
-- KEYS[2] notices:  hash, number -> a notification that is not delivered yet, JSON
-- KEYS[3] transitions: list, the newest first, JSON
-- KEYS[4] meta:
-- ARGV[1] what to do, ARGV[2] seconds that the keys are kept after the last change; then
--   lease    OWNER SECONDS           take or renew it
--   release  OWNER                   give it back
--   write    OWNER EPOCH NAME VERSION STATE TRANSITION MOST NOTICE …
--                                    store a state ("" removes it) if VERSION still is the stored one,
--                                    with its transition ("" for none, MOST are kept) and notices
--   settle   OWNER EPOCH NUMBER NOTICE   replace a notice; "" removes it
--   publish  OWNER EPOCH RULES REPORT    store the rules ("": as they are), the readings
--   silence  ID SILENCE              store a silence; "" removes it
-- Returns {done, now, …}: done is 1, or 0 if the lease is another's, the version is another, or
--   nothing was removed; lease returns {done, now, EPOCH, DEADLINE} of its owner.
--   Or the error STORE_MOVING.
-- Cost: constant, and some µs for each notice. Retry: safe; a write that was already done returns 0.
-- Cluster: the keys have to share a slot.

-- operations --

local call = redis.call
local refusal = refusal_of(KEYS[4])
if refusal then return refusal end
local time = call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local stamp = string.format('%.6f', now)
local action = ARGV[1]

local function lease()
  local epoch, deadline, owner =
    string.match(call('HGET', KEYS[1], 'lease') or '', '^(%d+) (%S+) (.*)$')
  return tonumber(epoch or '0'), tonumber(deadline or '0'), owner or ''
end

local function keep()
  for k = 1, 3 do call('EXPIRE', KEYS[k], ARGV[2]) end
end

if action == 'lease' then
  local epoch, deadline, owner = lease()
  local living = now < deadline and deadline < now + 2 * tonumber(ARGV[4])
  if living and owner ~= ARGV[3] then
    return {0, stamp, epoch, string.format('%.6f', deadline)}
  end
  if not living then epoch = epoch + 1 end
  deadline = string.format('%.6f', now + tonumber(ARGV[4]))
  call('HSET', KEYS[1], 'lease', epoch .. ' ' .. deadline .. ' ' .. ARGV[3])
  keep()
  return {1, stamp, epoch, deadline}
end

if action == 'release' then
  local epoch, _, owner = lease()
  if owner ~= ARGV[3] then return {0, stamp} end
  call('HSET', KEYS[1], 'lease', epoch .. ' 0 ')
  return {1, stamp}
end

if action == 'silence' then
  local field = 'silence:' .. ARGV[3]
  if ARGV[4] == '' then return {call('HDEL', KEYS[1], field), stamp} end
  call('HSET', KEYS[1], field, ARGV[4])
  keep()
  return {1, stamp}
end

local epoch, deadline, owner = lease()
if owner ~= ARGV[3] or epoch ~= tonumber(ARGV[4]) or now >= deadline then return {0, stamp} end

if action == 'settle' then
  if ARGV[6] == '' then return {call('HDEL', KEYS[2], ARGV[5]), stamp} end
  if call('HEXISTS', KEYS[2], ARGV[5]) == 0 then return {0, stamp} end
  call('HSET', KEYS[2], ARGV[5], ARGV[6])
  return {1, stamp}
end

if action == 'publish' then
  if ARGV[5] ~= '' then call('HSET', KEYS[1], 'rules', ARGV[5]) end
  call('HSET', KEYS[1], 'report', ARGV[6])
  keep()
  return {1, stamp}
end

local field = 'alert:' .. ARGV[5]
local stored = call('HGET', KEYS[1], field)
local version = stored and tonumber(string.match(stored, '"version":(%d+)')) or 0
if version ~= tonumber(ARGV[6]) then return {0, stamp} end
for i = 10, #ARGV do
  call('HSET', KEYS[2], call('HINCRBY', KEYS[1], 'number', 1), ARGV[i])
end
if ARGV[8] ~= '' then
  call('LPUSH', KEYS[3], ARGV[8])
  call('LTRIM', KEYS[3], 0, tonumber(ARGV[9]) - 1)
end
if ARGV[7] == '' then
  call('HDEL', KEYS[1], field)
else
  call('HSET', KEYS[1], field, ARGV[7])
end
keep()
return {1, stamp}
