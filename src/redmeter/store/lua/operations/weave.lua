-- weave: put entries among those of lists by their time, the newest first.
-- Keys: the lists.
-- Arguments: seconds that a list lives; most entries of a list; and for each list: how many it keeps,
--   how many are put in, and these, the newest first. What is there already is not cut for them, but
--   where another program let it grow past the most: what lies behind these goes with the first that
--   is put in.
-- Cost: 2 µs for each entry that is put in, or is there already, of which no more than the most are read.
-- An entry begins with its time, as push has it or as time.asctime() writes it; one that does not
--   stands right after the one before it. A list that had entries but no time to live stays without.

local MONTHS = {Jan = '01', Feb = '02', Mar = '03', Apr = '04', May = '05', Jun = '06', Jul = '07',
  Aug = '08', Sep = '09', Oct = '10', Nov = '11', Dec = '12'}

-- A text that sorts by time; nil where an entry does not say.
local function time_of(entry)
  local time = string.match(entry, '^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d[.%d]*Z')
  if time then return time end
  local month, day, clock, year =
    string.match(entry, '^%a%a%a (%a%a%a) ([ %d]%d) (%d%d:%d%d:%d%d) (%d%d%d%d)')
  if not MONTHS[month] then return nil end
  return year .. '-' .. MONTHS[month] .. '-' .. string.gsub(day, ' ', '0') .. 'T' .. clock .. 'Z'
end

local function times_of(entries)
  local times, time = {}, ''
  for at = #entries, 1, -1 do
    time = time_of(entries[at]) or time
    times[at] = time
  end
  return times
end

function operations.weave(i, keys, a)
  local life, most = ARGV[a], tonumber(ARGV[a + 1])

  local function put(key, keep, first, last)
    local ttl, stored = call('TTL', key), call('LRANGE', key, 0, most - 1)
    local given = {unpack(ARGV, first, last)}
    local stored_times, given_times = times_of(stored), times_of(given)
    -- How many that are there come before the first that is put in, and stay where they are.
    local s, g = 1, 1
    while s <= #stored and stored_times[s] >= (given_times[1] or '') do s = s + 1 end
    local before = s - 1
    local woven, room = {}, math.max(keep, #stored) - before
    while (s <= #stored or g <= #given) and #woven < room do
      if g > #given or s <= #stored and stored_times[s] >= given_times[g] then
        woven[#woven + 1], s = stored[s], s + 1
      else
        woven[#woven + 1], g = given[g], g + 1
      end
    end
    if #woven == 0 then return end
    -- Changes nothing, but whoever may not write finds out now, and not with the list cut already.
    call('RPUSH', key, woven[#woven])
    if before == 0 then call('DEL', key) else call('LTRIM', key, 0, before - 1) end
    for at = 1, #woven, 1000 do  -- unpack takes some thousands
      call('RPUSH', key, unpack(woven, at, math.min(at + 999, #woven)))
    end
    if ttl ~= -1 then call('EXPIRE', key, life) end
  end

  each_list(i, keys, a + 2, put)
end
