-- touch: record in an index when members were last active, and remove inactive ones.
-- Keys: a sorted set. Arguments: seconds after which a member is forgotten; member, Unix seconds …

function operations.touch(i, keys, a, count)
  local life = tonumber(ARGV[a])

  local function note()
    for at = a + 1, a + count - 1, 2 do
      call('ZADD', KEYS[i], 'GT', ARGV[at + 1], ARGV[at])
    end
    call('ZREMRANGEBYSCORE', KEYS[i], '-inf', '(' .. whole(server - life))
    call('EXPIRE', KEYS[i], ARGV[a])
  end

  local done, problem = pcall(note)
  if not done then reject_unkept(i, problem) end
end
