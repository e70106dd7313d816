-- Walk an index, and ask the same of the keys of each member: names and values in one round trip.
--
-- Only reads. Slices are asked for relative to the slice that is running by the server's clock, so
-- that who asks need not know what time it is there.
--
-- KEYS[1] the index, a sorted set
-- ARGV: how many words select members, and these: a command without its key, e.g. ZRANGEBYLEX
--   [60: (60; LIMIT 0 1000. WITHSCORES is not for here.
--   Then the number of bytes of a member that are no part of the name that keys are made of.
--   Then as often as wanted: a command, what stands before the name in the key, what stands after
--   it, how many arguments follow, and these. Commands of our own, whose key has a precision
--   between what stands before and the name:
--     WINDOW  FINE COUNT COARSE       the newest COUNT slices of FINE, as [start, value, …] of
--                                     those that are there: read from slices of COARSE, which is
--                                     FINE or a multiple of it, but for what lies before the first
--                                     of these
--     BEFORE  FINE COUNT COARSE SIZE  SIZE slices of COARSE, right before such a window
-- Returns the server's clock, seconds and microseconds; the members; and the replies to the
--   commands, those of the first member first. What a command fails by is its reply.
-- Cost: 2 µs for each member and command, 0.3 µs for each slice.
-- Retry: safe. Cluster: the keys of the members lie in the slot of the index.

local call = redis.call
local at = 0

local function take()
  at = at + 1
  return ARGV[at]
end

local function take_some()
  local some = {}
  for i = 1, tonumber(take()) do some[i] = take() end
  return some
end

local time = call('TIME')
local now = tonumber(time[1])

local function running(precision)
  return now - now % precision
end

-- Return the starts from one to another, the latter left out, as fields.
local function starts(from, to, precision)
  local fields = {}
  for start = from, to - 1, precision do fields[#fields + 1] = string.format('%d', start) end
  return fields
end

local function window(fine, count, coarse)
  local from = running(fine) - (count - 1) * fine
  if coarse == fine then
    return {{fine, starts(from, now + 1, fine)}}
  end
  local turn = from + (-from) % coarse
  return {{fine, starts(from, math.min(turn, now + 1), fine)}, {coarse, starts(turn, now + 1, coarse)}}
end

local function before(fine, count, coarse, size)
  local stop = running(fine) - (count - 1) * fine
  stop = stop - stop % coarse
  return {{coarse, starts(stop - size * coarse, stop, coarse)}}
end

-- Return a function that asks some slices of a name.
local function slices(parts, head, tail)
  return function(name)
    local found = {}
    for _, part in ipairs(parts) do
      local fields = part[2]
      if #fields > 0 then
        local key = head .. string.format('%d', part[1]) .. ':' .. name .. tail
        local values = redis.pcall('HMGET', key, unpack(fields))
        if values.err then return values end
        for i, value in ipairs(values) do
          if value then
            found[#found + 1] = fields[i]
            found[#found + 1] = value
          end
        end
      end
    end
    return found
  end
end

local selection = take_some()
local cut = tonumber(take())
local asks = {}
while at < #ARGV do
  local command, head, tail = take(), take(), take()
  local arguments = take_some()
  if command == 'WINDOW' or command == 'BEFORE' then
    for i, text in ipairs(arguments) do arguments[i] = tonumber(text) end
    local parts = (command == 'WINDOW' and window or before)(unpack(arguments))
    asks[#asks + 1] = slices(parts, head, tail)
  else
    asks[#asks + 1] = function(name)
      return redis.pcall(command, head .. name .. tail, unpack(arguments))
    end
  end
end

local members = call(selection[1], KEYS[1], unpack(selection, 2))
local replies = {}
for _, member in ipairs(members) do
  local name = string.sub(member, cut + 1)
  for _, ask in ipairs(asks) do replies[#replies + 1] = ask(name) end
end
return {time[1], time[2], members, replies}
