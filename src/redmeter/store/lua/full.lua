-- Mark a shard as full, or as not full: apply.lua refuses new series of one that is.
--
-- KEYS[1] meta:   ARGV[1] size of the store, bytes; "" if it is not full
-- A store without meta: stays without. Retry: safe. Cost: constant.

if ARGV[1] == '' then return redis.call('HDEL', KEYS[1], 'full') end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'full', ARGV[1]) end
