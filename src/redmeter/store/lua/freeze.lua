-- Change the state of a shard that is copied to another store: see migrating/states.py.
--
-- `frozen` is "TOKEN DEADLINE", by the server's clock: apply.lua applies no batch until then. It
-- can be renewed or committed only before the deadline, so a process that slept past it has lost
-- the shard. `moved` is the ID of the move, and stays: no batch is ever applied here again.
-- `moved_prefix` is the prefix of the target, which writers that follow go by.
--
-- KEYS[1] meta:   KEYS[2] known:, so that a cluster refuses it if the two are in different slots
-- ARGV[1] look · freeze · renew · unfreeze · commit
-- ARGV[2] token of the caller
-- ARGV[3] freeze, renew: how long, seconds; commit: ID of the move
-- ARGV[4] commit: another ID that an already moved shard may have; or ""
-- ARGV[5] commit: the prefix that the store has from now on; none: as it was written before
-- Returns {1 done or 0 refused, ID of the move or "", `receiving` or "", token of the freeze that
--   is in force or "", seconds it has left}.
-- Retry: safe. Cost: constant. Cluster: one slot.

local call = redis.call
local action, token = ARGV[1], ARGV[2]
local time = call('TIME')
local now = time[1] + time[2] / 1000000
local meta = call('HMGET', KEYS[1], 'frozen', 'moved', 'receiving')
local frozen, moved, receiving = meta[1], meta[2], meta[3]
local holder, deadline = string.match(frozen or '', '^(%S+) (%S+)$')
deadline = tonumber(deadline) or 0
if now >= deadline then holder = nil end
local done = false

local function freeze_until(moment)
  holder, deadline, done = token, moment, true
  call('HSET', KEYS[1], 'frozen', string.format('%s %.3f', token, moment))
end

if action == 'freeze' then
  if not moved and not receiving and (not holder or holder == token) then
    freeze_until(now + tonumber(ARGV[3]))
  end
elseif action == 'renew' then
  if holder == token and not moved then freeze_until(now + tonumber(ARGV[3])) end
elseif action == 'unfreeze' then
  if holder == token then
    call('HDEL', KEYS[1], 'frozen')
    holder, done = nil, true
  end
elseif action == 'commit' then
  if moved and (moved == ARGV[3] or moved == ARGV[4]) or not moved and holder == token then
    call('HSET', KEYS[1], 'moved', ARGV[3])
    if ARGV[5] then call('HSET', KEYS[1], 'moved_prefix', ARGV[5]) end
    call('HDEL', KEYS[1], 'frozen')
    holder, moved, done = nil, ARGV[3], true
  end
end
local left = holder and deadline - now or 0
return {done and 1 or 0, moved or '', receiving or '', holder or '', string.format('%.3f', left)}
