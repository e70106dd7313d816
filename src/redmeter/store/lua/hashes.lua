-- Read hashes, unless all replies together have more than a number of bytes.
--
-- KEYS: pairs of hashes, of one shard: the buckets of a histogram and its moments.
-- ARGV: the most bytes; then for each pair how many fields to read, and these. 0 stands for the
--   whole hash, which is faster than many fields of a small hash.
-- Returns the reply to HGETALL or HMGET for each hash; an empty array where they have more bytes.
--   What a command fails by is the reply.
-- Cost: 1 µs for each field. At most one hash is read in vain because it is too large.
-- Retry: safe, since it only reads. Cluster: the keys are in one slot.

local left, at, found = tonumber(ARGV[1]), 2, {}
for pair = 1, #KEYS, 2 do
  local count = tonumber(ARGV[at])
  for key = pair, pair + 1 do
    local reply
    if count == 0 then
      reply = redis.pcall('HGETALL', KEYS[key])
    else
      reply = redis.pcall('HMGET', KEYS[key], unpack(ARGV, at + 1, at + count))
    end
    if reply.err then return reply end
    for _, text in ipairs(reply) do
      if text then left = left - #text end
    end
    if left < 0 then return {} end
    found[key] = reply
  end
  at = at + count + 1
end
return found
