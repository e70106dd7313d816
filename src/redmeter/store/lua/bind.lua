-- Return the store's configuration, after writing it if there is none.
--
-- KEYS[1] meta:   KEYS[2] known:, so that a cluster refuses it if the two are in different slots
-- ARGV[1] format   ARGV[2] shards   ARGV[3] retention   ARGV[4] of histograms
-- ARGV[5] version of these   ARGV[6] a random text, the birth of a new store
-- Returns {format, shards, retention, of histograms, version, birth} of the store.
-- Retry: safe, the first one decides. Cost: constant. Cluster: one slot.

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'format', ARGV[1], 'partitions', ARGV[2],
    'retention', ARGV[3], 'histograms', ARGV[4], 'version', ARGV[5])
end
local known = redis.call('HMGET', KEYS[1], 'format', 'born')
if known[1] == ARGV[1] and not known[2] then
  -- "~": the birth proves nothing, since this hash alone may have been evicted or deleted. Then the
  -- server has evicted keys, or known: is left.
  local evicted = string.match(tostring(redis.pcall('INFO', 'stats')), 'evicted_keys:(%d+)')
  local left = evicted and evicted ~= '0' or redis.call('EXISTS', KEYS[2]) == 1
  redis.call('HSET', KEYS[1], 'born', (left and '~' or '') .. ARGV[6])
end
return redis.call('HMGET', KEYS[1], 'format', 'partitions', 'retention', 'histograms', 'version',
  'born')
