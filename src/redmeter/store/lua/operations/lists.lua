-- What operations on lists share: from ARGV[a] on, for each list how many entries it keeps, how many
-- are given, and these. put(key, keep, first, last) does something with ARGV[first] to ARGV[last].

local function each_list(i, keys, a, put)
  for key = i, i + keys - 1 do
    local last = a + 1 + tonumber(ARGV[a + 1])
    local done, problem = pcall(put, KEYS[key], tonumber(ARGV[a]), a + 2, last)
    if not done then reject(key, problem) end
    a = last + 1
  end
end
