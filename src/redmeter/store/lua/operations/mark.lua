-- mark: note a moment by its label, unless that was noted shortly before or after.
-- Keys: a sorted set, member "TIME LABEL", score the time, Unix seconds.
-- Arguments: time; label; within how many seconds it is the same mark; seconds that a mark lives;
--   most marks.
-- Tells "is 1" where it is a new mark, "is 0" otherwise.

function operations.mark(i, keys, a)
  local key, time, label, near, life = KEYS[i], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]

  local function note()
    local at = tonumber(time)
    for _, member in ipairs(call('ZRANGEBYSCORE', key, at - near, at + near)) do
      if string.match(member, '^[^ ]+ (.*)$') == label then return 'is 0' end
    end
    call('ZADD', key, time, time .. ' ' .. label)
    call('ZREMRANGEBYSCORE', key, '-inf', '(' .. whole(server - life))
    call('ZREMRANGEBYRANK', key, 0, -1 - tonumber(ARGV[a + 4]))
    call('EXPIRE', key, life)
    return 'is 1'
  end

  local done, told = pcall(note)
  reject(i, type(told) == 'table' and told.err or told)
end
