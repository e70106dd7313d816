-- Walk an index, and run the same commands for the keys of each member, in one round trip.
--
-- Read-only. Windows are relative to the current interval by the server's clock, so the caller need
-- not know its time.
--
-- KEYS[1] the index, a sorted set
-- ARGV: number of words of a command that selects members, and these: without its key, e.g.
--   ZRANGEBYLEX [60: (60; LIMIT 0 1000. WITHSCORES is not supported.
--   Then the number of bytes of a member before the name that keys are made of, and the
--   microseconds after which no further member is read, or 0.
--   Then any number of: a command, the text before the name in its key, the text after it, the
--   number of further arguments, and these. Commands of our own, whose key has a precision between
--   the first text and the name:
--     WINDOW FINE COUNT WIDTH …   the newest COUNT intervals of FINE, as [start, value, …] of those
--                                 that exist: read from the fewest intervals of FINE and of these
--                                 widths, ascending, each a multiple of the one before
--     COUNTS FINE COUNT WIDTH …   the same for counters: a start may also be a float: 1700000000.0
--     BEFORE FINE COUNT EARLIER LENGTH GAP WIDTH …   the same for LENGTH seconds that end GAP seconds
--                                 before that window, from intervals of EARLIER and these widths
--     RANGE FROM TO WIDTH …       the same for the time from FROM to TO
--   And two whose key is not made of the name: that of the first text, and the index.
--     FIELD                       the field of a hash with this name; nil also if it is not a hash
--     SCORE                       the score of the member
-- Returns the server's clock, seconds and microseconds; the members; and the replies to the
--   commands, those of the first member first. The error of a command is its reply; the error of
--   the selection replaces the members.
-- Cost: 3 µs per member and command, 1 µs per interval. At least one member is read, so the time
--   limit is exceeded by at most one member.
-- Retry: safe. Cluster: the keys of the members are in the slot of the index.

local MANY = 40  -- fields of a hash

local call = redis.call
local at = 0

-- On a cluster, a key that has moved to another node before its slot cannot be read here: then the
-- whole slot is skipped, and the caller retries.
local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err and string.find(reply.err, 'non local key', 1, true) then
    error(reply.err, 0)
  end
  return reply
end

local function take()
  at = at + 1
  return ARGV[at]
end

local function take_some()
  local some = {}
  for i = 1, tonumber(take()) do some[i] = take() end
  return some
end

-- Return a time in seconds. TIME does not advance within a script of Redis 7 and Valkey, which have
-- os.clock, the processor time; in Redis 6 it does.
local clock = rawget(_G, 'os') and os.clock or function()
  local now = call('TIME')
  return now[1] + now[2] / 1e6
end

local began = clock()
local time = call('TIME')
local now = tonumber(time[1])

-- Return the intervals that cover a time, the coarsest that fit: {{width, field, …}, …}.
local function cover(from, to, widths, level, found)
  local width = widths[level]
  local first, last = from + (-from) % width, to - to % width
  if level > 1 and first >= last then return cover(from, to, widths, level - 1, found) end
  if level > 1 and from < first then cover(from, first, widths, level - 1, found) end
  local fields = {}
  for start = first, last - 1, width do fields[#fields + 1] = string.format('%d', start) end
  if #fields > 0 then found[#found + 1] = {width, fields} end
  if level > 1 and last < to then cover(last, to, widths, level - 1, found) end
  return found
end

local function window(fine, count, ...)
  local widths = {fine, ...}
  local from = now - now % fine - (count - 1) * fine
  -- The end of the coarsest current interval: there is nothing after the current time.
  local coarsest = widths[#widths]
  return cover(from, now - now % coarsest + coarsest, widths, #widths, {})
end

local function before(fine, count, earlier, length, gap, ...)
  local widths = {earlier, ...}
  local to = now - now % fine - (count - 1) * fine - gap
  to = to - to % earlier
  return cover(to - length, to, widths, #widths, {})
end

local function range(from, to, ...)
  return cover(from, to, {...}, select('#', ...), {})
end

-- Add the intervals of one precision of a name; return the error if there is one. Looking up a field
-- scans the hash, so for many fields the hash is read as a whole.
local function add(key, part, found)
  local fields, many = part[2], #part[2] > MANY
  local values = many and try('HGETALL', key) or try('HMGET', key, unpack(fields))
  if values.err then return values end
  if many then
    for i = 1, #values, 2 do
      if part[3][values[i]] then
        found[#found + 1] = values[i]
        found[#found + 1] = values[i + 1]
      end
    end
    return
  end
  for i, value in ipairs(values) do
    if value then
      found[#found + 1] = fields[i]
      found[#found + 1] = value
    end
  end
end

-- Add the spellings of starts as floats.
local function spelled(parts)
  for _, part in ipairs(parts) do
    local fields = part[2]
    for i = 1, #fields do fields[#fields + 1] = fields[i] .. '.0' end
  end
  return parts
end

-- Return a function that reads intervals of a name.
local function slices(parts, head, tail)
  for _, part in ipairs(parts) do
    part[3] = {}
    for _, field in ipairs(part[2]) do part[3][field] = true end
  end
  return function(name)
    local found = {}
    for _, part in ipairs(parts) do
      local error = add(head .. string.format('%d', part[1]) .. ':' .. name .. tail, part, found)
      if error then return error end
    end
    return found
  end
end

local COVERS = {WINDOW = window, COUNTS = window, BEFORE = before, RANGE = range}

local selection = take_some()
local cut, limit = tonumber(take()), tonumber(take()) / 1e6
local asks = {}
while at < #ARGV do
  local command, head, tail = take(), take(), take()
  local arguments = take_some()
  if COVERS[command] then
    for i, text in ipairs(arguments) do arguments[i] = tonumber(text) end
    local parts = COVERS[command](unpack(arguments))
    if command == 'COUNTS' then parts = spelled(parts) end
    asks[#asks + 1] = slices(parts, head, tail)
  elseif command == 'FIELD' then
    asks[#asks + 1] = function(name)
      local found = try('HGET', head, name)
      return type(found) ~= 'table' and found
    end
  elseif command == 'SCORE' then
    asks[#asks + 1] = function(_, member) return try('ZSCORE', KEYS[1], member) end
  else
    asks[#asks + 1] = function(name)
      return try(command, head .. name .. tail, unpack(arguments))
    end
  end
end

local members = redis.pcall(selection[1], KEYS[1], unpack(selection, 2))
if members.err then return {time[1], time[2], members, {}} end
local read, replies = {}, {}
for i, member in ipairs(members) do
  local name = string.sub(member, cut + 1)
  for _, ask in ipairs(asks) do replies[#replies + 1] = ask(name, member) end
  read[i] = member
  if limit > 0 and clock() - began > limit then break end
end
return {time[1], time[2], read, replies}
