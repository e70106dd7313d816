-- Write or remove keys of one shard, for the one process that may: see migrating/copy.py.
--
-- KEYS[1] meta:   KEYS[2…] the keys
-- ARGV[1] the field of meta: that grants access, ARGV[2] the value that it must have
-- ARGV[3…] for each key: HSET, ZADD, RPUSH, SET, or UNLINK, which removes it;
--   1: remove it before, 0: add to it; milliseconds to live, 0: no limit; how many values; these
-- Returns {size of each key}: fields, members, entries or bytes; or the error FENCED.
-- Retry: safe if the key is removed before, and for all but lists. Cost: 0.5 µs a value; callers
--   send about 1,000. Cluster: all keys of one shard share a slot.

local call, unpack = redis.call, unpack
if call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then
  return redis.error_reply('FENCED this store belongs to another migration by now')
end

local SIZES = {HSET = 'HLEN', ZADD = 'ZCARD', RPUSH = 'LLEN', SET = 'STRLEN'}
local sizes, a = {}, 3
for k = 2, #KEYS do
  local key, command, count = KEYS[k], ARGV[a], tonumber(ARGV[a + 3])
  if command == 'UNLINK' then
    sizes[k - 1] = call('UNLINK', key)
  else
    if ARGV[a + 1] == '1' then call('UNLINK', key) end
    call(command, key, unpack(ARGV, a + 4, a + 3 + count))
    if ARGV[a + 2] ~= '0' then call('PEXPIRE', key, ARGV[a + 2]) end
    sizes[k - 1] = call(SIZES[command], key)
  end
  a = a + 4 + count
end
return sizes
