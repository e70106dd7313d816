-- slice: add to intervals of counters' hashes.
-- Keys: known:, a hash for each interval.
-- Arguments: bytes of a key before its entry in the index; 1: hashes that are made here expire,
--   otherwise a cleaner removes them; runs with an amount for each interval.
-- Other programs write counters, too: those without a time to live are theirs.

function operations.slice(i, keys, a)
  local family = {
    index = KEYS[i], before = ARGV[a], expire = ARGV[a + 1] == '1', shared = true,
  }
  local function add(key, start, amount)
    local value = attempt('HINCRBY', key, start, amount)
    return value == tonumber(amount) or type(value) == 'table' and value
  end
  write_slices(i + 1, i + keys - 1, ARGV[a + 2], family, add)
end
