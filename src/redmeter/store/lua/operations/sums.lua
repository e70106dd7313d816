-- sums: merge into the grand totals of histograms.
-- Keys: sums: and spreads:, once for each name.
-- Arguments: name, "COUNT TOTAL M2", buckets for each.
-- The two fields of a name describe the same values: both are written, or neither. If one is missing
-- (another program removed it), both begin again.

function operations.sums(i, keys, a)
  for key = i, i + keys - 1, 2 do
    local name = ARGV[a]
    local moments = attempt('HGET', KEYS[key], name)
    local buckets = attempt('HGET', KEYS[key + 1], name)
    local problem = type(moments) == 'table' and moments or type(buckets) == 'table' and buckets
    if not problem then
      if not moments or not buckets then moments, buckets = nil, nil end
      local done = attempt('HSET', KEYS[key], name, merge_moments(moments, ARGV[a + 1]))
      if type(done) ~= 'table' then
        done = attempt('HSET', KEYS[key + 1], name, merge_buckets(buckets, ARGV[a + 2]))
      end
      problem = type(done) == 'table' and done
    end
    if problem then reject(key, problem) end
    a = a + 3
  end
end
