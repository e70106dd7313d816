-- Clean the series of one stretch of an index: remove slices that have left the retention,
-- hashes that hold nothing else, and index entries without a hash.
--
-- KEYS[1] the index   KEYS[2] meta:
-- ARGV[1] rank of the first entry, counted from the end   ARGV[2] most entries
-- ARGV[3] passes made before: a precision of N minutes is due in every Nth
-- ARGV[4] the caller's clock, Unix seconds
-- ARGV[5] what stands before an entry in the key of its hash
-- ARGV[6] the same of a second hash that an entry has; "" where it has none
-- ARGV[7] most fields of a hash that are looked at here; larger ones are only named
-- ARGV[8] 1: also name hashes that were large and are not stored compactly yet
-- ARGV[9] samples to keep of a precision that is not among the following
-- ARGV[10…] precision, samples, …
-- Returns {entries seen, of them not due, slices removed, hashes removed, entries removed,
--   {entries whose hash is large, or was}, {entries that are none, or whose key holds something else}};
--   or the error STORE_MOVING.
-- Nothing live is ever removed: looking and removing are one step here, and the time is the
--   earlier of the two clocks.
-- Cost: about 4 µs an entry, and 100 ns for each field that is looked at. Stops after WORK.
-- Retry: safe. Cluster: the hashes' keys are made here from the index's entries and are not in
--   KEYS (handing them in made a pass a third slower); they lie in the slot of the index.

local WORK = 5000  -- entries count for 25, fields for 1: about 1 ms
local WIDEST = 31622400  -- seconds; wider slices are none of ours

-- operations --

local refusal = refusal_of(KEYS[2])
if refusal then return refusal end

local call = redis.call
local time = call('TIME')
local now = math.floor(math.min(time[1] + time[2] / 1000000, tonumber(ARGV[4])))
local passes, before, beside, most = tonumber(ARGV[3]), ARGV[5], ARGV[6], tonumber(ARGV[7])
local compact, kept = ARGV[8] == '1', {}
-- Without a prefix, writers give no time to live.
local expiring = before ~= 'count:'
for a = 10, #ARGV, 2 do kept[tonumber(ARGV[a])] = tonumber(ARGV[a + 1]) end

local unused, bare, large, strange = {}, {}, {}, {}
local work, not_due, slices = 0, 0, 0

-- Of the precision at hand: how its entries begin, and the newest start that has left.
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
  -- A slice counts while it started less than `samples` slices ago.
  last = now - samples * precision
  last_text = string.format('%.0f', last)
  digits = last > 0 and #last_text or 0
end

-- How many fields have left the retention; they are added to a list where one is given. Texts of
-- equal length compare as their numbers do, and faster: so most live ones need not be read; not so
-- below zero. What is no number stays, whatever it begins with.
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

-- Another program may go on with a hash that was given a time to live, without renewing it. What
-- lies further ahead than writers may write is no slice: a time in milliseconds, inf.
local function prolong(key, ttl, fields)
  local newest, furthest = last, now + (samples + 2) * precision
  for j = 1, #fields do
    local start = tonumber(fields[j])
    if start and start <= furthest then newest = math.max(newest, start) end
  end
  local wanted = math.ceil(newest + (samples + 1) * precision - now)
  if ttl < wanted - precision then call('EXPIRE', key, wanted) end
end

-- Clean a hash; tell whether something is left of it, or nil where it is none.
local function clean_hash(entry, key)
  local count = redis.pcall('HLEN', key)
  if type(count) == 'table' then
    -- On a cluster, a hash that has gone to another node already, before its slot: not now.
    if string.find(count.err, 'non local key', 1, true) then error(count.err, 0) end
    return nil
  end
  if count == 0 then return false end
  -- Small ones are cheaper to look at than to ask about. Otherwise, what its writers trim and let
  -- expire needs nothing, unless it may expire before it was looked at twice more.
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
  slices = slices + gone
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
  if beside ~= '' and left ~= nil then
    local other = clean_hash(entry, beside .. entry)
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
return {seen, not_due, slices, #unused, removed, large, strange}
