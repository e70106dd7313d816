-- Write a hash anew that has become small, so that Redis stores it compactly again.
--
-- Redis turns a hash past 512 fields into a hash table, at ten times the memory, and never back.
--
-- KEYS[1] the hash
-- ARGV[1] most fields that are written anew
-- Returns 1 compact now · 0 as it was: compact already, too large, or for this server's settings.
-- Cost: 1 µs a field. Retry: safe, nothing is lost or changed. Cluster: one key.

if redis.call('OBJECT', 'ENCODING', KEYS[1]) ~= 'hashtable' then return 0 end
if redis.call('HLEN', KEYS[1]) > tonumber(ARGV[1]) then return 0 end
local ttl = redis.call('PTTL', KEYS[1])
local all = redis.call('HGETALL', KEYS[1])
-- Changes nothing, but fails now if writes are not allowed, instead of after the hash is deleted.
redis.call('HSET', KEYS[1], all[1], all[2])
redis.call('UNLINK', KEYS[1])
redis.call('HSET', KEYS[1], unpack(all))
if ttl > 0 then redis.call('PEXPIRE', KEYS[1], ttl) end
if redis.call('OBJECT', 'ENCODING', KEYS[1]) == 'hashtable' then return 0 end
return 1
