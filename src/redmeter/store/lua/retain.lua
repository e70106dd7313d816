-- Change the store's retention, if it still is the one that the caller saw.
--
-- KEYS[1] meta:
-- ARGV[1] retention   ARGV[2] version seen   ARGV[3] version from now on
-- Returns 1 changed · 0 someone else was faster, nothing changed.
-- Retry: safe; a second run answers 0 and the caller looks again. Cost: constant.

if redis.call('HGET', KEYS[1], 'version') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'retention', ARGV[1], 'version', ARGV[3])
return 1
