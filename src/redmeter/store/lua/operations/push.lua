-- push: put entries in front of lists, the newest first, and keep so many.
-- Keys: the lists.
-- Arguments: seconds that a list lives after its last entry; and for each list: how many it keeps,
--   how many entries, the entries, the oldest first.
-- A list that had entries but no time to live is another program's too, and stays without.

function operations.push(i, keys, a)
  local life = ARGV[a]

  local function put(key, keep, first, last)
    local ttl = call('TTL', key)
    for at = first, last, 1000 do  -- unpack takes some thousands
      call('LPUSH', key, unpack(ARGV, at, math.min(at + 999, last)))
    end
    call('LTRIM', key, 0, keep - 1)
    if ttl ~= -1 then call('EXPIRE', key, life) end
  end

  a = a + 1
  for key = i, i + keys - 1 do
    local last = a + 1 + tonumber(ARGV[a + 1])
    local done, problem = pcall(put, KEYS[key], tonumber(ARGV[a]), a + 2, last)
    if not done then reject(key, problem) end
    a = last + 1
  end
end
