-- What operations on slices share: hashes slice start -> value, with a time to live, trimming and,
-- where a family has one, an index. Their text is one of runs
--   "precision samples start start …:value value …;"
-- in which hashes that have the same slices follow each other, each with a value for every start:
-- kinds/slices.py. Their keys are the index, where there is one, and a hash for each slice.

local gmatch, find = string.gmatch, string.find  -- looked up once, not for each slice

-- When a life of so many seconds ends, Unix milliseconds: the server turns every other way to say
-- it into this one, at some cost.
local expiries = {}

local function expiry(life)
  local text = expiries[life]
  if not text then
    text = whole((server + life) * 1000)
    expiries[life] = text
  end
  return text
end

-- Large batches are flushes of many series. There it pays to ask many keys at once whether they are
-- new, and to trim one in SKIPPED hashes that have a single new slice, another one each time: asking
-- how many fields there are costs as much as writing one.
local large, SKIPPED, turn = #KEYS >= 64, 4, tonumber(time[2])

-- The slices of a precision that went out lately, the newest first.
local lately = {}

local function gone_lately(width, samples)
  local gone = lately[width]
  if not gone then
    gone = {}
    local last = math.floor(now / width) * width - samples * width
    for age = 1, large and 2 * SKIPPED or 1 do gone[age] = whole(last - (age - 1) * width) end
    lately[width] = gone
  end
  return gone
end

-- Remove what has left the retention. Usually that is what went out lately; a series with pauses
-- leaves others behind, which are looked for when there are too many. Hashes past 512 fields were
-- written by others and are the cleaner's: this call must stay short.
local function trim_hash(key, width, samples)
  local fields = call('HLEN', key)
  if fields <= samples or fields > 512 then return end
  local gone = gone_lately(width, samples)
  if call('HDEL', key, unpack(gone)) + samples + 2 >= fields then return end
  local last, others = tonumber(gone[1]), {}
  for _, start in ipairs(call('HKEYS', key)) do
    local n = tonumber(start)
    if n and n <= last then others[#others + 1] = start end
  end
  if #others > 0 then call('HDEL', key, unpack(others)) end
end

-- Whether the hashes up to KEYS[asked] are new: asked for many at once, and no more after the first
-- that is not. What is new need not be asked how many fields it has, nor how long it lives.
local all_new, asked = large, 0

local function ask_ahead(i, last)
  asked = math.min(i + 31, last)
  all_new = attempt('EXISTS', unpack(KEYS, i, asked)) == 0
end

-- A hash has new slices, so many of them, up to the newest: renew how long it lives, and its entry in
-- the index. That is done with an eighth to spare, so that it is seldom needed. May fail.
local function renew(i, key, family, width, samples, appended, newest)
  local due = true
  if family.expire then
    local life = (samples + 1) * width
    if newest > server then life = life + math.ceil(newest - server) end
    local ttl = all_new and -1 or call('TTL', key)
    due = ttl < life
    -- A hash that had data but no time to live is another program's, which would not renew it: it
    -- stays without, and is the cleaner's to sweep.
    local foreign = ttl == -1 and not all_new and family.shared and call('HLEN', key) > appended
    if due and not foreign then
      call('PEXPIREAT', key, expiry(life + math.ceil(samples * width / 8)))
    end
  end
  if due then family.due[#family.due + 1] = i end
  local turn_to_trim = not large or appended > 1 or (turn + i) % SKIPPED == 0
  if trim and not all_new and turn_to_trim then
    trim_hash(key, width, samples)
  end
end

-- Write the index entries that are due, many at once: that is cheaper by half than one by one.
local function write_index(family)
  if not family.index then return end
  local due, most = family.due, 1000  -- unpack takes some thousands
  for first = 1, #due, most do
    local entries, last = {}, math.min(first + most - 1, #due)
    for at = first, last do
      local n = 2 * (at - first)
      entries[n + 1], entries[n + 2] = '0', string.sub(KEYS[due[at]], family.before + 1)
    end
    local done = attempt('ZADD', family.index, unpack(entries))
    if type(done) == 'table' then
      for at = first, last do reject_unkept(due[at], done) end
    end
  end
end

local function outside(start, width, samples)
  if start + width < now - width * samples then return 'aged' end
  if start - server > width * samples then return 'future' end
end

local function split(text)
  local words = {}
  for word in gmatch(text, '[^ ]+') do words[#words + 1] = word end
  return words
end

-- Go through the runs of a text, with the keys from KEYS[i] to KEYS[last]. A family is what the
-- hashes of a kind share; its `due` lists the keys whose index entry is to be written. What writes a
-- slice is given its key, its start, its width and what there is to write; it returns true where
-- the slice is new, or the error that came back.
local function write_slices(i, last, text, each, family, write)
  -- Of the run at hand: its starts, where there is more than one, which of them are refused and
  -- why, the newest of the others; and of the hash at hand: its slices so far, and the new ones.
  local width, samples, list, starts, many, why, newest
  local k, appended = 0, 0

  local function slice(one, other, third)
    k = k + 1
    local key = KEYS[i]
    if all_new and i > asked then ask_ahead(i, last) end
    if why and why[k] then
      reject(i, why[k])
    else
      local new = write(key, starts and starts[k] or list, width, one, other, third)
      if new == true then
        appended = appended + 1
      elseif new then
        reject(i, new.err)
      end
    end
    if k == many then
      if appended > 0 then
        local done, problem = pcall(renew, i, key, family, width, samples, appended, newest)
        if not done then reject_unkept(i, problem) end
      end
      k, appended = 0, 0
    end
    i = i + 1
  end

  for precision, kept, heads, values in gmatch(text, '(%d+) (%d+) ([^:]*):([^;]*);') do
    width, samples, list = tonumber(precision), tonumber(kept), heads
    starts = find(list, ' ', 1, true) and split(list)
    many, why, newest = starts and #starts or 1, nil, -math.huge
    for n = 1, many do
      local start = tonumber(starts and starts[n] or list)
      local reason = refuse and outside(start, width, samples)
      if reason then
        why = why or {}
        why[n] = reason
      elseif start > newest then
        newest = start
      end
    end
    if find(values, ' ', 1, true) then
      for one, other, third in gmatch(values, each) do slice(one, other, third) end
    else
      slice(values)
    end
  end
  write_index(family)
end
