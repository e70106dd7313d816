-- Store the report of a producer, and assign its instance number.
--
-- Numbers are small, so that per-process data stays small: 0, 1, 2 …, the lowest that no active
-- process holds. A process is active if it published recently; one that was only paused keeps its
-- number unless another process needed it.
--
-- KEYS[1] writers:   KEYS[2] reports:   KEYS[3] instances:   KEYS[4] meta:
-- ARGV[1] producer   ARGV[2] its report, JSON
-- ARGV[3] 1: it needs a number   ARGV[4] 1: it ends, and gives its number back
-- ARGV[5] how long after its last report a writer counts as alive, seconds
-- ARGV[6] how long after it a writer is kept, seconds
-- ARGV[7] how many writers are kept; those alive are kept anyway
-- Returns the number that the producer holds from now on, or nil; or the error STORE_MOVING while
--   the store receives the data of another one, since the three keys are copied then.
-- Cost: 10 µs; 1 µs for each holder of a number where one is given out, and for each of the up to
--   100 writers that are removed.
-- Retry: safe, the same answer again. Cluster: the keys have to share a slot.

local SWEPT = 100  -- writers removed in one call

local call = redis.call
local producer = ARGV[1]
local now = tonumber(call('TIME')[1])
local alive, kept = now - tonumber(ARGV[5]), tonumber(ARGV[6])

if call('HGET', KEYS[4], 'receiving') then
  return redis.error_reply('STORE_MOVING receiving')
end
call('ZADD', KEYS[1], now, producer)
call('HSET', KEYS[2], producer, ARGV[2])

local function sweep(from, to, most)
  local gone = call('ZRANGEBYSCORE', KEYS[1], from, to, 'LIMIT', 0, most)
  if #gone == 0 then return end
  call('HDEL', KEYS[3], unpack(gone))
  call('HDEL', KEYS[2], unpack(gone))
  call('ZREM', KEYS[1], unpack(gone))  -- last: broken off before, they are found again
end

local over = call('ZCARD', KEYS[1]) - tonumber(ARGV[7])
if over > 0 then
  sweep('-inf', '(' .. alive, math.min(over, SWEPT))
else
  sweep('-inf', '(' .. now - kept, SWEPT)
end
sweep('(' .. now + kept, '+inf', SWEPT)  -- the server's clock was far ahead once

local function lowest_free()
  local living, taken, dead = {}, {}, {}
  for _, writer in ipairs(call('ZRANGEBYSCORE', KEYS[1], alive, '+inf')) do living[writer] = true end
  local holders = call('HGETALL', KEYS[3])
  for i = 1, #holders, 2 do
    local side = living[holders[i]] and taken or dead
    side[holders[i + 1]] = holders[i]
  end
  local number = 0
  while taken[tostring(number)] do number = number + 1 end
  local before = dead[tostring(number)]
  if before then call('HDEL', KEYS[3], before) end
  return number
end

local number = nil
if ARGV[4] == '1' then
  call('HDEL', KEYS[3], producer)
else
  number = tonumber(call('HGET', KEYS[3], producer) or '')
  if not number and ARGV[3] == '1' then
    number = lowest_free()
    call('HSET', KEYS[3], producer, number)
  end
end
for k = 1, 3 do call('EXPIRE', KEYS[k], ARGV[6]) end
return number
