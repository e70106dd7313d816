-- Change the state of a shard that data are copied to: see migrating/states.py.
--
-- `receiving` is "TOKEN ID": who copies, and for which move. While it is there, apply.lua applies
-- no batch, and copy.lua writes for this caller alone. `verified` has the same value once all
-- data are there: a server that was restored from an older snapshot lacks it, and is not opened.
--
-- KEYS[1] meta:   KEYS[2…] look, begin: indexes and the like; none of them exists in an empty store
-- ARGV[1] look · begin · verify · open; look answers as begin does, and changes nothing
-- ARGV[2] the value of `receiving`
-- ARGV[3] look, begin: 1: also if there are data, which are going to be replaced
-- ARGV[4…8] begin: format, shards, retention, retention of histograms, version: as meta: has them
-- Returns 1 done · 0 refused: it has data, or belongs to another caller · -1 it is frozen itself.
-- Retry: safe. Cost: constant. Cluster: one slot.

local call = redis.call
local action, fence = ARGV[1], ARGV[2]
local meta = call('HMGET', KEYS[1], 'receiving', 'verified', 'frozen')
local receiving, verified, frozen = meta[1], meta[2], meta[3]

if action == 'begin' or action == 'look' then
  local deadline = tonumber(string.match(frozen or '', ' (%S+)$')) or 0
  if tonumber(call('TIME')[1]) < deadline then return -1 end
  if not receiving and ARGV[3] ~= '1' then
    for k = 2, #KEYS do
      if call('EXISTS', KEYS[k]) == 1 then return 0 end
    end
  end
  if action == 'look' then return 1 end
  call('HSET', KEYS[1], 'format', ARGV[4], 'partitions', ARGV[5], 'retention', ARGV[6],
    'histograms', ARGV[7], 'version', ARGV[8], 'receiving', fence)
  call('HDEL', KEYS[1], 'frozen', 'moved', 'moved_prefix', 'verified', 'probe')
  return 1
elseif action == 'verify' then
  if receiving ~= fence then return 0 end
  call('HSET', KEYS[1], 'verified', fence)
  return 1
end
if verified ~= fence or receiving and receiving ~= fence then return 0 end
call('HDEL', KEYS[1], 'receiving')
return 1
