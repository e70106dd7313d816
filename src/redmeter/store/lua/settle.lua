-- Note how far a move to another store has come, and let go of what has arrived there.
--
-- KEYS[1] the lock of who moves   KEYS[2] moving:   KEYS[3…] what lives only for a while from now on;
--   where ARGV[5] is a number, KEYS[3] takes what was under way, after the move's id
-- ARGV[1] token of the lock   ARGV[2] how long the lock lives, milliseconds; 0 gives it back
-- ARGV[3] how long KEYS[3…] live, seconds
-- ARGV[4] number of what is under way, and ARGV[5] of the next after it, or nothing while it goes on;
--   both nothing where that is not looked at
-- ARGV[6] how many fields are set
-- ARGV[7…] as many times field, value; then fields that are removed
-- Returns 1 · 0 the lock is another's, or has run out · -1 that is not under way: this server has lost
--   what it wrote. 0, -1: nothing done.
-- Cost: 1 µs a key. Retry: safe; who gives the lock back and notes something is answered 0 by a second
--   try, as by a lock that had run out. Cluster: all keys of one partition share a slot.

local call = redis.call
local holder = call('GET', KEYS[1])
if not holder and ARGV[2] == '0' and #KEYS == 2 and #ARGV == 6 then
  return 1  -- nobody's, and nothing to note: that is what was asked for
end
if holder ~= ARGV[1] then return 0 end
if ARGV[4] ~= '' then
  local number = call('HGET', KEYS[2], 'number')
  local under_way = number == ARGV[4] and call('HEXISTS', KEYS[2], 'group') == 1
  if not (under_way or number == ARGV[5]) then return -1 end
end
local at = 6 + 2 * tonumber(ARGV[6])
if at > 6 then call('HSET', KEYS[2], unpack(ARGV, 7, at)) end
if ARGV[5] ~= '' then
  local group = call('HGET', KEYS[2], 'group')
  if group then call('SET', KEYS[3], (call('HGET', KEYS[2], 'id') or '') .. ' ' .. group) end
end
if at < #ARGV then call('HDEL', KEYS[2], unpack(ARGV, at + 1)) end
for i = 3, #KEYS do call('EXPIRE', KEYS[i], ARGV[3]) end
if ARGV[2] == '0' then
  call('DEL', KEYS[1])
else
  call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
