-- Remove what has left the retention from some counters' hashes, and index entries without a hash.
--
-- KEYS[1] known:   KEYS[2…] hashes
-- ARGV[1] the caller's clock, Unix seconds
-- ARGV[2] most fields of a hash that are looked at here; larger ones are only named
-- ARGV[3…] for each hash: its entry in known:, precision, samples
-- Returns {slices removed, hashes removed, entries removed, i, what, i, what …}, what being
--   large: KEYS[i] has too many fields · or the server's error, e.g. WRONGTYPE.
-- Nothing live is ever removed: looking and removing are one step here, and the time is the
--   earlier of the two clocks.
-- Cost: 13 µs a hash of 120 fields, 3 µs for one that its writers keep trimmed.
-- Retry: safe. Cluster: all keys of one partition share a slot.

local call = redis.call
local time = call('TIME')
local now = math.min(time[1] + time[2] / 1000000, tonumber(ARGV[1]))
local most = tonumber(ARGV[2])
local slices, hashes, entries = 0, 0, 0
local reply = {}

-- Fields of a hash whose slice is at or before a start, and the newest of the others.
local function split(fields, last)
  local gone, newest, text = {}, nil, string.format('%.0f', last)
  local length = #text
  for j = 1, #fields do
    local field = fields[j]
    -- Texts of equal length compare as their numbers do, and faster; not so below zero.
    if #field == length and last > 0 then
      if field <= text then gone[#gone + 1] = field
      elseif not newest or field > newest then newest = field end
    else
      local start = tonumber(field)
      if start and start <= last then gone[#gone + 1] = field
      else newest = newest or field end
    end
  end
  return gone, newest
end

local function clean(i, entry, precision, samples)
  local key = KEYS[i]
  local count = call('HLEN', key)
  if count == 0 then
    entries = entries + call('ZREM', KEYS[1], entry)
    return
  end
  local ttl = call('TTL', key)
  -- Its writers trim it and let it expire: nothing to do while they renew it.
  if ttl > samples * precision / 2 and count <= samples + 2 then return end
  if count > most then
    reply[#reply + 1] = i
    reply[#reply + 1] = 'large'
    return
  end
  -- A slice counts while it started less than `samples` slices ago.
  local gone, newest = split(call('HKEYS', key), math.floor(now) - samples * precision)
  if #gone == count then
    call('UNLINK', key)
    call('ZREM', KEYS[1], entry)
    slices, hashes, entries = slices + count, hashes + 1, entries + 1
    return
  end
  for first = 1, #gone, 1000 do
    call('HDEL', key, unpack(gone, first, math.min(first + 999, #gone)))
  end
  slices = slices + #gone
  -- Another program goes on with a hash that was given a time to live and does not renew it.
  newest = tonumber(newest)
  if ttl >= 0 and newest then
    local wanted = math.ceil(newest + (samples + 1) * precision - now)
    if ttl < wanted - precision then call('EXPIRE', key, wanted) end
  end
end

for i = 2, #KEYS do
  local a = 3 * i - 3
  local done, problem = pcall(clean, i, ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]))
  if not done then
    reply[#reply + 1] = i
    reply[#reply + 1] = type(problem) == 'table' and problem.err or problem
  end
end

return {slices, hashes, entries, unpack(reply)}
