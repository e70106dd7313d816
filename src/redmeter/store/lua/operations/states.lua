-- The states of a store that is being moved: the start of scripts that change data and are no
-- batch. See freeze.lua and receive.lua.

-- Return the error of a shard that must not be changed now, or nil.
local function refusal_of(key)
  local meta = redis.call('HMGET', key, 'frozen', 'moved', 'receiving')
  local state
  if meta[2] then
    state = 'moved'
  elseif meta[3] then
    state = 'receiving'
  elseif meta[1] then
    local deadline = tonumber(string.match(meta[1], ' (%S+)$')) or 0
    if tonumber(redis.call('TIME')[1]) < deadline then state = 'frozen' end
  end
  return state and redis.error_reply('STORE_MOVING ' .. state)
end
