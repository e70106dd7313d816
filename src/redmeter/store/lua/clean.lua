-- Clean a range of an index: remove intervals outside the retention, hashes without any other
-- fields, and index entries without a hash.
--
-- KEYS[1] the index   KEYS[2] meta:
-- ARGV[1] rank of the first entry, counted from the end   ARGV[2] most entries
-- ARGV[3] number of earlier passes: a precision of N minutes is due in every Nth
-- ARGV[4] the caller's clock, Unix seconds
-- ARGV[5] prefix of the key of an entry's hash
-- ARGV[6] prefix of the key of its second hash; "" if it has none
-- ARGV[7] most fields of a hash that is cleaned here; larger hashes are only reported
-- ARGV[8] 1: also report hashes that were large and do not have the compact encoding yet
-- ARGV[9] samples to keep of a precision that is not listed
-- ARGV[10…] precision, samples, …
-- Returns {entries seen, of these not due, intervals removed, hashes removed, entries removed,
--   {entries whose hash is or was large}, {entries that are malformed or whose key has another type}};
--   or the error STORE_MOVING.
-- Live data is never removed: checking and removing are one atomic step, and the time is the
--   earlier of the two clocks.
-- Cost: about 4 µs per entry, and 100 ns per field. Stops after WORK.
-- Retry: safe. Cluster: the keys of the hashes are derived here from the index entries and are not
--   in KEYS (passing them made a pass a third slower); they are in the slot of the index.

local WORK = 5000  -- entries count for 25, fields for 1: about 1 ms
local WIDEST = 31622400  -- seconds; wider intervals are not written by Redmeter

-- operations --

local refusal = refusal_of(KEYS[2])
if refusal then return refusal end

local call = redis.call
local time = call('TIME')
local now = math.floor(math.min(time[1] + time[2] / 1000000, tonumber(ARGV[4])))
local passes, before, second_head, most = tonumber(ARGV[3]), ARGV[5], ARGV[6], tonumber(ARGV[7])
local compact, kept = ARGV[8] == '1', {}
-- Without a prefix, writers give no time to live.
local expiring = before ~= 'count:'
for a = 10, #ARGV, 2 do kept[tonumber(ARGV[a])] = tonumber(ARGV[a + 1]) end

local unused, bare, large, strange = {}, {}, {}, {}
local work, not_due, removed_fields = 0, 0, 0

-- Of the current precision: the prefix of its entries, and the newest expired start.
local prefix, precision, samples, due, last, last_text, digits = '', nil

local function turn_to(entry)
  local text = string.match(entry, '^(%d+):.')
  precision = text and tonumber(text)
  if not precision or precision < 1 or #text > 10 or expiring and precision > WIDEST then
    prefix, precision = '', nil
    return
  end
  prefix = text .. ':'
  due = passes % math.max(1, math.floor(precision / 60)) == 0
  samples = kept[precision] or tonumber(ARGV[9])
  -- An interval is live if it started fewer than `samples` intervals ago.
  last = now - samples * precision
  last_text = string.format('%.0f', last)
  digits = last > 0 and #last_text or 0
end

-- Return the number of expired fields, and append them to a list if there is one. Texts of equal
-- length compare like their numbers, and faster, so most live ones need not be parsed; not so below
-- zero. A field that is not a number stays.
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

-- Another program may keep using a hash with a time to live without renewing it. A field further
-- ahead than writers may write is no interval: a time in milliseconds, inf.
local function prolong(key, ttl, fields)
  local newest, furthest = last, now + (samples + 2) * precision
  for j = 1, #fields do
    local start = tonumber(fields[j])
    if start and start <= furthest then newest = math.max(newest, start) end
  end
  local wanted = math.ceil(newest + (samples + 1) * precision - now)
  if ttl < wanted - precision then call('EXPIRE', key, wanted) end
end

-- Clean a hash; return whether anything is left of it, or nil if it is not a hash.
local function clean_hash(entry, key)
  local count = redis.pcall('HLEN', key)
  if type(count) == 'table' then
    -- On a cluster, a hash that has moved to another node before its slot: not now.
    if string.find(count.err, 'non local key', 1, true) then error(count.err, 0) end
    return nil
  end
  if count == 0 then return false end
  -- Small ones are cheaper to read than to ask about. Otherwise writers trim them and let them
  -- expire, so there is nothing to do unless one may expire before the pass after next.
  local ttl = expiring and count > 16 and call('TTL', key)
  local soon = math.max(samples * precision / 2, 3 * 60, 3 * precision)
  if ttl and ttl > soon and count <= samples + 2 then return true end
  if count > most then
    large[#large + 1] = entry
    return true
  end
  work = work + count
  local fields = call('HKEYS', key)
  local gone = count_gone(fields)
  removed_fields = removed_fields + gone
  if gone == count then
    unused[#unused + 1] = key
    return false
  end
  if gone > 0 then
    local list = {}
    count_gone(fields, list)
    call('HDEL', key, unpack(list))
  end
  -- It was large once, and still takes ten times the memory.
  if compact and count > 16 and call('OBJECT', 'ENCODING', key) == 'hashtable' then
    large[#large + 1] = entry
  end
  if expiring then
    ttl = ttl or call('TTL', key)
    if ttl >= 0 then prolong(key, ttl, fields) end
  end
  return true
end

local function clean(entry)
  local left = clean_hash(entry, before .. entry)
  if second_head ~= '' and left ~= nil then
    local other = clean_hash(entry, second_head .. entry)
    if other ~= false then left = other end
  end
  if left == nil then
    strange[#strange + 1] = entry
    if large[#large] == entry then large[#large] = nil end
  elseif not left then
    bare[#bare + 1] = entry
  end
end

local page = call('ZREVRANGE', KEYS[1], ARGV[1], ARGV[1] + ARGV[2] - 1)
local seen = 0
while seen < #page and work < WORK do
  seen = seen + 1
  work = work + 25
  local entry = page[seen]
  if prefix == '' or #entry == #prefix or string.sub(entry, 1, #prefix) ~= prefix then
    turn_to(entry)
  end
  if not precision or #entry == #prefix then
    strange[#strange + 1] = entry
  elseif due then
    clean(entry)
  else
    not_due = not_due + 1
  end
end
if #unused > 0 then call('UNLINK', unpack(unused)) end
local removed = #bare > 0 and call('ZREM', KEYS[1], unpack(bare)) or 0
return {seen, not_due, removed_fields, #unused, removed, large, strange}
