-- Say what the store is, or write it down where nobody has.
--
-- KEYS[1] meta:   KEYS[2] known:, so that a cluster refuses it where the two are far apart
-- ARGV[1] format   ARGV[2] partitions   ARGV[3] retention   ARGV[4] of histograms
-- ARGV[5] version of these
-- Returns {format, partitions, retention, of histograms, version} as the store has them.
-- Retry: safe, the first one decides. Cost: constant. Cluster: one slot.

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'format', ARGV[1], 'partitions', ARGV[2],
    'retention', ARGV[3], 'histograms', ARGV[4], 'version', ARGV[5])
end
return redis.call('HMGET', KEYS[1], 'format', 'partitions', 'retention', 'histograms', 'version')
