-- mark: note a moment by its label, unless that was noted shortly before or after. It is another mark
-- where another label lies between the two: v1, v2, and back to v1.
-- Keys: a sorted set, member "TIME LABEL", score the time, Unix seconds.
-- Arguments: time; label; within how many seconds it is the same mark; seconds that a mark lives;
--   most marks; how long before the later of the two another label must lie, seconds.
-- Tells "is 1" where it is a new mark, "is 0" otherwise.

function operations.mark(i, keys, a)
  local key, time, label, near, life = KEYS[i], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]

  local function note()
    local at, apart = tonumber(time), ARGV[a + 5]
    -- The nearest marks on either side: of the same label, and of others.
    local same_before, other_before, same_after, other_after
    local found = call('ZRANGEBYSCORE', key, at - near, at + near, 'WITHSCORES')
    for n = 1, #found, 2 do
      local text, score = string.match(found[n], '^[^ ]+ (.*)$'), tonumber(found[n + 1])
      if text == label then
        if score <= at then same_before = score end
        if score >= at then same_after = same_after or score end
      elseif text then
        if score <= at - apart then other_before = score end
        if score > at then other_after = other_after or score end
      end
    end
    if same_before and not (other_before and other_before > same_before) then return 'is 0' end
    if same_after and not (other_after and other_after <= same_after - apart) then return 'is 0' end
    call('ZADD', key, time, time .. ' ' .. label)
    call('ZREMRANGEBYSCORE', key, '-inf', '(' .. whole(server - life))
    call('ZREMRANGEBYRANK', key, 0, -1 - tonumber(ARGV[a + 4]))
    call('EXPIRE', key, life)
    return 'is 1'
  end

  local done, told = pcall(note)
  reject(i, told)
end
