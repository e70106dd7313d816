-- Remove those entries of an index of which nothing is left.
--
-- KEYS[1] the index   KEYS[2…] what the entries stand for: as many keys for each, entry by entry
-- ARGV[1…] the entries
-- Returns how many were removed.
-- Nothing live is removed: looking and removing are one step here.
-- Cost: 1 µs a key; callers name about 400. Retry: safe.
-- Cluster: all keys of one partition share a slot.

local call = redis.call
local each, gone = (#KEYS - 1) / #ARGV, {}
for i = 1, #ARGV do
  local first = 2 + (i - 1) * each
  if call('EXISTS', unpack(KEYS, first, first + each - 1)) == 0 then gone[#gone + 1] = ARGV[i] end
end
return #gone > 0 and call('ZREM', KEYS[1], unpack(gone)) or 0
