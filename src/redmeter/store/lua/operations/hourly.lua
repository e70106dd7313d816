-- What operations by the hour share: one key for this hour, and one for the last hour before it that
-- had something. Keys, four of each: KEY, KEY:start, KEY:last, KEY:pstart; the second and the fourth
-- say which hour that is, in Unix seconds. Whoever comes first in a new hour moves the old one on.

local HOUR = 3600
local this_hour = math.floor(server / HOUR) * HOUR

-- Days from 1970 to a date of the Gregorian calendar.
local function days(year, month, day)
  if month <= 2 then year, month = year - 1, month + 12 end
  local leaps = math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
  return 365 * year + leaps + math.floor((153 * (month - 3) + 2) / 5) + day - 719469
end

-- Which hour a text means, Unix seconds. Other programs write an hour of the day (0 to 23), which
-- is taken for the latest one that has come, or an ISO text; what is none of these is nobody's.
local function hour_of(text)
  local n = text and tonumber(text)
  if n and n - n == 0 then
    if n < 0 or n >= 24 then return math.floor(n / HOUR) * HOUR end
    local hour = math.floor(server / 86400) * 86400 + math.floor(n) * HOUR
    return hour > this_hour and hour - 86400 or hour
  end
  local y, m, d, h = string.match(text or '', '^(%d%d%d%d)-(%d%d)-(%d%d)[T ](%d%d)')
  if y then return days(tonumber(y), tonumber(m), tonumber(d)) * 86400 + tonumber(h) * HOUR end
end

-- Find the key for what happened in an hour, given the first of four keys. Returns the key, whether
-- it begins now, and the hour that it is of; or nil, where the hour asked for is older than both that
-- are kept. May fail. Where nothing is refused, an hour of any age may be begun.
-- A clock that is ahead opens no hour that has not come, and what comes late none that is older than
-- the one before the present; where the server's own clock has stepped back, what was begun goes on.
local function hourly(i, hour, life)
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
