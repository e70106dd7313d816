-- Remove what has left the retention from counters' hashes of one precision, and index entries
-- without a hash.
--
-- KEYS[1] known:   KEYS[2…] hashes
-- ARGV[1] the caller's clock, Unix seconds   ARGV[2] precision   ARGV[3] samples to keep
-- ARGV[4] bytes of a key before its entry in known:
-- ARGV[5] most fields of a hash that are looked at here; larger ones are only named
-- Returns {slices removed, hashes removed, entries removed, i, what, i, what …}, what being
--   large: KEYS[i] has too many fields · or the server's error, e.g. WRONGTYPE.
-- Nothing live is ever removed: looking and removing are one step here, and the time is the
--   earlier of the two clocks.
-- Cost: 3 µs for a hash that its writers keep trimmed, 13 µs for another one of 120 fields.
-- Retry: safe. Cluster: all keys of one partition share a slot.

local call = redis.call
local time = call('TIME')
local now = math.floor(math.min(time[1] + time[2] / 1000000, tonumber(ARGV[1])))
local precision, samples = tonumber(ARGV[2]), tonumber(ARGV[3])
local before, most = tonumber(ARGV[4]), tonumber(ARGV[5])
-- A slice counts while it started less than `samples` slices ago.
local last = now - samples * precision
local last_text = string.format('%.0f', last)
local digits = last > 0 and #last_text or 0
local unused, bare = {}, {}
local slices, reply = 0, {}

-- How many fields have left the retention; they are added to a list where one is given. Texts of
-- equal length compare as their numbers do, and faster, which spares most live ones the reading;
-- not so below zero. What is no number stays.
local function count_gone(fields, list)
  local gone = 0
  for j = 1, #fields do
    local field = fields[j]
    local left
    if #field == digits and field > last_text then
      left = false
    else
      local start = tonumber(field)
      left = start and start <= last
    end
    if left then
      gone = gone + 1
      if list then list[gone] = field end
    end
  end
  return gone
end

local function newest_of(fields)
  local newest = last
  for j = 1, #fields do newest = math.max(newest, tonumber(fields[j]) or last) end
  return newest
end

local function clean(i)
  local key = KEYS[i]
  local count = call('HLEN', key)
  if count == 0 then
    bare[#bare + 1] = string.sub(key, before + 1)
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
  local fields = call('HKEYS', key)
  local gone = count_gone(fields)
  if gone == count then
    unused[#unused + 1] = key
    bare[#bare + 1] = string.sub(key, before + 1)
    slices = slices + count
    return
  end
  if gone > 0 then
    local list = {}
    count_gone(fields, list)
    slices = slices + call('HDEL', key, unpack(list))
  end
  if ttl >= 0 then
    -- Another program may go on with a hash that was given a time to live, without renewing it.
    local wanted = math.ceil(newest_of(fields) + (samples + 1) * precision - now)
    if ttl < wanted - precision then call('EXPIRE', key, wanted) end
  end
end

for i = 2, #KEYS do
  local done, problem = pcall(clean, i)
  if not done then
    reply[#reply + 1] = i
    reply[#reply + 1] = type(problem) == 'table' and problem.err or problem
  end
end
if #unused > 0 then call('UNLINK', unpack(unused)) end
local entries = #bare > 0 and call('ZREM', KEYS[1], unpack(bare)) or 0
return {slices, #unused, entries, unpack(reply)}
