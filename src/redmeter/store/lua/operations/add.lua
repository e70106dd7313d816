-- add: add to fields of one hash.
-- Keys: the hash, once for each field. Arguments: field, amount for each.

function operations.add(i, keys, a)
  for key = i, i + keys - 1 do
    local value = attempt('HINCRBY', KEYS[key], ARGV[a], ARGV[a + 1])
    if type(value) == 'table' then reject(key, value) end
    a = a + 2
  end
end
