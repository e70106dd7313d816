-- mark: add a mark, unless it is there already.
--
-- An explicit label within some minutes of the same label is the same mark, unless another label is
-- between the two: v1, v2 and back to v1 are three marks. A release is one mark for as long as no
-- other release follows it, however many processes start with it and however late they start. The
-- newest release is a member of its own, "release LABEL", scored with the time of its mark; where
-- there is none, the newest mark counts as it.
-- Keys: a sorted set, member "TIME LABEL", score the time, Unix seconds.
-- Arguments: time; label; within how many seconds it is the same mark; seconds that a mark lives;
--   most members; how long before the later of the two another label must be, seconds;
--   "1" if it is a release, else "".
-- Answers "is 1" if it is a new mark, "is 0" otherwise.
-- Cost: linear in the marks around it; of a new release, in all marks (1,000).

function operations.mark(i, keys, a)
  local key, time, label, near, life = KEYS[i], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local release = ARGV[a + 6] == '1'

  -- Returns time and label, or nothing for a member of another form, such as "release LABEL".
  local function parsed(member)
    local space = string.find(member, ' ', 1, true)
    local moment = space and tonumber(string.sub(member, 1, space - 1))
    if moment then return moment, string.sub(member, space + 1) end
  end

  -- Returns the member that names the newest release, if there is one; time and label of the newest
  -- mark; and the label of the newest one that is not later than a time.
  local function releases(at)
    local named, since, newest, before
    for _, member in ipairs(call('ZRANGEBYSCORE', key, '-inf', '+inf')) do
      local moment, text = parsed(member)
      if moment then
        since, newest = moment, text
        if moment <= at then before = text end
      elseif string.sub(member, 1, 8) == 'release ' then
        named = member
      end
    end
    return named, since, newest, before
  end

  local function note()
    local at, apart = tonumber(time), ARGV[a + 5]
    local current, since

    -- Remember the release, whose mark has this time, unless another one is newer.
    local function remember(moment)
      if not release or current and moment < since then return end
      if current then call('ZREM', key, current) end
      call('ZADD', key, moment, 'release ' .. label)
    end

    if release then
      -- The usual case, a restart, needs no walk.
      if call('ZSCORE', key, 'release ' .. label) then return 'is 0' end
      local newest_at, newest, before
      current, newest_at, newest, before = releases(at)
      if current then
        since = tonumber(call('ZSCORE', key, current))
        -- A restart that is stored after the next release.
        if at < since and before == label then return 'is 0' end
      elseif newest == label then
        remember(newest_at)
        return 'is 0'
      end
    end
    -- The nearest marks on either side: of the same label, and of others.
    local same_before, other_before, same_after, other_after
    local around = call('ZRANGEBYSCORE', key, at - near, at + near)
    local ending, length = ' ' .. label, -1 - #label
    for _, member in ipairs(around) do
      if string.sub(member, length) == ending then
        local moment, text = parsed(member)
        if text == label then
          if moment <= at then same_before = moment end
          if moment >= at then same_after = same_after or moment end
        end
      end
    end
    if same_before or same_after then
      for _, member in ipairs(around) do
        local moment, text = parsed(member)
        if moment and text ~= label then
          if moment <= at - apart then other_before = moment end
          if moment > at then other_after = other_after or moment end
        end
      end
    end
    local same = same_before
    if same and other_before and other_before > same then same = nil end
    if not same and same_after and not (other_after and other_after <= same_after - apart) then
      same = same_after
    end
    if same then
      remember(same)
      return 'is 0'
    end
    call('ZADD', key, time, time .. ' ' .. label)
    remember(at)
    call('ZREMRANGEBYSCORE', key, '-inf', '(' .. whole(server - life))
    call('ZREMRANGEBYRANK', key, 0, -1 - tonumber(ARGV[a + 4]))
    call('EXPIRE', key, life)
    return 'is 1'
  end

  local done, result = pcall(note)
  reject(i, result)
end
