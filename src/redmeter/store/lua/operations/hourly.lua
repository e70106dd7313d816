-- Shared by operations that count by the hour: one key for this hour, and one for the last hour before
-- it that had something. Keys, four of each: KEY, KEY:start, KEY:last, KEY:pstart; the second and the
-- fourth hold the start of that hour, in Unix seconds. The first write of a new hour moves the old one on.
--
-- Without a prefix the data keys are shared with programs that use the listings of "Redis in Action".
-- These compare the hour of the day in KEY:start with their own, and stop moving hours on where they
-- find Unix seconds. So our two hour keys have names of their own there, and the listings' two follow.
-- They hold the hour of the day. Where the listings' hour of the day differs from ours, the listings have
-- moved the hours on since we wrote, and ours follow; where it is the same, ours has the date.

local HOUR = 3600
-- How far the clock of a program that writes an hour of the day may be ahead of the server's, seconds.
local AHEAD = 60
local this_hour = math.floor(server / HOUR) * HOUR

-- Days from 1970 to a date of the Gregorian calendar.
local function days(year, month, day)
  if month <= 2 then year, month = year - 1, month + 12 end
  local leaps = math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
  return 365 * year + leaps + math.floor((153 * (month - 3) + 2) / 5) + day - 719469
end

-- Return the hour of a text, Unix seconds. Other programs write an hour of the day (0 to 23), which
-- means the latest such hour, or an ISO text; anything else is no hour.
local function hour_of(text)
  local n = text and tonumber(text)
  if n and n - n == 0 then
    if n < 0 or n >= 24 then return math.floor(n / HOUR) * HOUR end
    local hour = math.floor((server + AHEAD) / 86400) * 86400 + math.floor(n) * HOUR
    return hour > server + AHEAD and hour - 86400 or hour
  end
  local y, m, d, h = string.match(text or '', '^(%d%d%d%d)-(%d%d)-(%d%d)[T ](%d%d)')
  if y then return days(tonumber(y), tonumber(m), tonumber(d)) * 86400 + tonumber(h) * HOUR end
end

-- Find the key for an event of some hour, given the first of four keys. Returns the key, whether it
-- begins now, and its hour; or nil, where the event's hour is older than both that are kept. May fail.
-- Where nothing is refused, an hour of any age may be begun.
-- A clock that is ahead opens no hour that has not come, and a late event none that is older than
-- the one before the present; where the server's own clock was set back, the hour begun goes on.
local function key_of_hour(i, hour, life)
  local key, start_key, last, pstart = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  hour = math.min(hour, this_hour)
  local too_old = refuse and hour < this_hour - HOUR
  local start = hour_of(call('GET', start_key))
  if too_old and (not start or hour > start) then
    return nil
  elseif not start then
    call('SET', start_key, whole(hour), 'EX', life)
    return key, call('EXISTS', key) == 0, hour  -- of another program, or expired
  elseif hour > start then
    -- By a command that fails where either is something else: another program's is not moved on.
    if call('ZCARD', key) + 0 * call('ZCARD', last) > 0 then
      call('RENAME', key, last)
      call('EXPIRE', last, life)  -- another program's has no time to live
    else
      call('DEL', last)
    end
    call('SET', pstart, whole(start), 'EX', life)
    call('SET', start_key, whole(hour), 'EX', life)
    return key, true, hour
  elseif hour == start or start > this_hour then
    return key, call('EXISTS', key) == 0, start
  end
  local before = hour_of(call('GET', pstart))
  if before == hour then return last, call('EXISTS', last) == 0, hour end
  if too_old or before and before > hour then return nil end
  if call('ZCARD', last) > 0 then call('DEL', last) end
  call('SET', pstart, whole(hour), 'EX', life)
  return last, true, hour
end

local function hour_of_day(hour) return math.floor(hour / HOUR) % 24 end

-- Set our hours to those of the listings, where they have moved them on: i and t are the first of our
-- four keys and of the listings' two.
local function follow(i, t, life)
  local theirs, ours = hour_of(call('GET', KEYS[t])), hour_of(call('GET', KEYS[i + 1]))
  if not theirs or ours and hour_of_day(theirs) == hour_of_day(ours) then return end
  local before = hour_of(call('GET', KEYS[t + 1]))
  if before and ours and hour_of_day(before) == hour_of_day(ours) then before = ours end
  call('SET', KEYS[i + 1], whole(theirs), 'EX', life)
  if before then call('SET', KEYS[i + 3], whole(before), 'EX', life) else call('DEL', KEYS[i + 3]) end
end

-- Write our hours to a key of the listings, as the hour of the day. It lives as long as the data.
local function publish(ours, theirs, data, life)
  local hour = hour_of(call('GET', ours))
  if not hour then
    call('DEL', theirs)
  elseif call('TTL', data) == -1 then  -- another program's
    call('SET', theirs, whole(hour_of_day(hour)))
  else
    call('SET', theirs, whole(hour_of_day(hour)), 'EX', life)
  end
end

-- Find the key for an event: see key_of_hour().
-- t: the first of the listings' two keys, or nil where there is a prefix.
-- create: whether these are written where the listings' program has not; it is not in stats:, whose
-- listing fails where they exist.
local function hourly(i, hour, life, t, create)
  if not t then return key_of_hour(i, hour, life) end
  local shown = call('GET', KEYS[t])
  follow(i, t, life)
  local start, before = call('GET', KEYS[i + 1]), call('GET', KEYS[i + 3])
  local key, fresh, of = key_of_hour(i, hour, life)
  if not create and (not shown or (tonumber(shown) or 0) >= 24) then
    -- Unix seconds: ours, from before we left these keys to the listings.
    if shown then call('DEL', KEYS[t], KEYS[t + 1]) end
  else
    local new_start, new_before = call('GET', KEYS[i + 1]), call('GET', KEYS[i + 3])
    if new_start and (new_start ~= start or shown ~= whole(hour_of_day(hour_of(new_start)))) then
      publish(KEYS[i + 1], KEYS[t], KEYS[i], life)
    end
    if new_before ~= before then publish(KEYS[i + 3], KEYS[t + 1], KEYS[i + 2], life) end
  end
  -- Another program's data does not expire, so its date must not.
  if call('TTL', KEYS[i]) == -1 and call('TTL', KEYS[i + 1]) ~= -1 then
    call('SET', KEYS[i + 1], call('GET', KEYS[i + 1]))
  end
  return key, fresh, of
end

-- stat: merge statistics into sorted sets that are kept by the hour.
-- Keys: four for each, see hourly.lua; six without a prefix.
-- Arguments: seconds that they live; 1: return the resulting count, sum and sumsq; the number of
--   keys for each; and for each: the name of the histogram, the hour, count, min, max, sum, sumsq, mean, m2.
-- Statistics cover two hours: values of an older hour are skipped, and so are those after the next
--   hour; this is not reported, since the histograms have them. THIS_HOUR is the current hour.
-- Members: min, max, count, sum, sumsq, as other programs keep them; and n, mean, m2 of the
--   values written here, merged by Chan's formula: the others lose all digits where values are large and close
--   together. Nothing becomes infinite: it stops at the largest double.

local THIS_HOUR = 2 ^ 40

local LARGEST = 1.7976931348623157e308

local function exact(n)
  return string.format('%.17g', math.max(-LARGEST, math.min(LARGEST, n)))
end

function operations.stat(i, keys, a)
  local life, answer, step = ARGV[a], ARGV[a + 1] == '1', tonumber(ARGV[a + 2])
  a = a + 3

  local function merge(at, hour, count, low, high, sum, sumsq, mean, m2)
    if hour > this_hour + HOUR and hour < THIS_HOUR then return end
    local key, fresh = hourly(at, hour, life, step == 6 and at + 4, false)
    if not key then return not refuse and 'aged' or nil end
    local old = call('ZMSCORE', key, 'min', 'max', 'count', 'sum', 'sumsq', 'n', 'mean', 'm2')
    for k = 1, 8 do old[k] = tonumber(old[k] or '') end
    local n = old[7] and old[8] and old[6] or 0
    if n > 0 then
      local delta = mean - old[7]
      m2 = old[8] + m2 + delta * delta * (n / (n + count)) * count
      mean = old[7] + delta * (count / (n + count))
    end
    local counted = whole((old[3] or 0) + count)
    sum, sumsq = exact((old[4] or 0) + sum), exact((old[5] or 0) + sumsq)
    call('ZADD', key, exact(math.min(old[1] or low, low)), 'min',
      exact(math.max(old[2] or high, high)), 'max', counted, 'count', sum, 'sum', sumsq, 'sumsq',
      whole(n + count), 'n', exact(mean), 'mean', exact(m2), 'm2')
    if fresh then call('EXPIRE', key, life) end
    if answer then reject(at, 'is ' .. counted .. ' ' .. sum .. ' ' .. sumsq) end
  end

  for at = i, i + keys - 1, step do
    local values = {}
    for k = 1, 8 do values[k] = tonumber(ARGV[a + k]) end
    local done, reason = true, refused['histogram ' .. ARGV[a]] and 'store-full'
    if not reason then done, reason = pcall(merge, at, unpack(values)) end
    if reason then reject(at, reason) end
    a = a + 9
  end
end

-- tally: add to members of sorted sets that are kept by the hour, up to so many members an hour in
-- all sets of a group together.
-- Keys: five for each: the group's hash, hour -> how many members there are, and four, see hourly.lua;
--   seven without a prefix.
-- Arguments: seconds that they live; most members; how many keys there are for each; and for each: its
--   member of messages:, the hour, how many pairs, and these: member, amount. Amounts of members beyond the
--   most are added to "(other)", which is none. Where `steps` has counted the same before, it has found the
--   place of each member, and nothing else is limited.
-- The hash is read if a member is new, and written if it stays. Members of other programs count
--   towards the limit in the sets that members are added to.

local OTHER = '(other)'
local DAY = 86400

function operations.tally(i, keys, a)
  local life, most, step = ARGV[a], tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2])
  a = a + 3

  -- How many members an hour of a group has, but for the one that was just added.
  local function counted(hash, key, hour)
    local members = call('ZCARD', key) - 1
    if call('ZSCORE', key, OTHER) then members = members - 1 end
    return math.max(members, tonumber(call('HGET', hash, whole(hour)) or '') or 0)
  end

  local function note(hash, hour, members)
    if call('HSET', hash, whole(hour), members) == 1 then
      for _, field in ipairs(call('HKEYS', hash)) do
        if (tonumber(field) or 0) < hour - DAY then call('HDEL', hash, field) end
      end
    end
    call('EXPIRE', hash, DAY)
  end

  local function add(at, names, hour, first, last)
    local key, fresh, of = hourly(at + 1, hour, life, step == 7 and at + 5, true)
    if not key then return 'aged' end
    local hash, before, members = KEYS[at]
    for pair = first, last, 2 do
      local member, amount = names and names[ARGV[pair]] or ARGV[pair], ARGV[pair + 1]
      if call('ZINCRBY', key, amount, member) == amount and member ~= OTHER then
        if not members then
          local done, size = pcall(counted, hash, key, of)
          if not done then
            reject_unkept(at, size)
            size = call('ZCARD', key) - 1
          end
          before, members = size, size
        end
        if names or members < most then
          members = members + 1
        else
          call('ZREM', key, member)
          call('ZINCRBY', key, amount, OTHER)
        end
      end
    end
    if fresh then call('EXPIRE', key, life) end
    if members ~= before then
      local done, problem = pcall(note, hash, of, members)
      if not done then reject_unkept(at, problem) end
    end
  end

  for at = i, i + keys - 1, step do
    local last = a + 2 + 2 * tonumber(ARGV[a + 2])
    local done, reason = pcall(add, at, renamed[ARGV[a]], tonumber(ARGV[a + 1]), a + 3, last)
    if reason then reject(at + 1, reason) end
    a = last + 1
  end
end
