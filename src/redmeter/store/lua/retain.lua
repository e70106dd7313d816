-- Change what the store keeps, if that still is what the caller saw.
--
-- KEYS[1] meta:   KEYS[2] known:, so that a cluster refuses it where the two are far apart
-- ARGV[1] retention   ARGV[2] of histograms   ARGV[3] version seen   ARGV[4] version from now on
-- Returns 1 changed · 0 someone else was faster, nothing changed; or the error STORE_MOVING.
-- Retry: safe; a second run answers 0 and the caller looks again. Cost: constant.

-- operations --

local refusal = refusal_of(KEYS[1])
if refusal then return refusal end
if redis.call('HGET', KEYS[1], 'version') ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], 'retention', ARGV[1], 'histograms', ARGV[2], 'version', ARGV[4])
return 1
