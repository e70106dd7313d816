-- Take series out of their place, so that they can be moved to another store: rename what there is,
-- and write down who has it. What is written there from now on begins anew, and is taken later.
--
-- KEYS[1] the lock of who moves   KEYS[2] moving:   KEYS[3] the index of what is taken, or moving:
--   where it has none   KEYS[4…] in pairs: a key, and what it is called from now on
-- ARGV[1] token of the lock   ARGV[2] how long the lock lives, milliseconds
-- ARGV[3] what is under way from now on, JSON   ARGV[4] its number, which is the next one
-- ARGV[5] keys: the keys are renamed, and the members ARGV[6…] leave the index
--         fields: the fields ARGV[6…] of the hash KEYS[4] are moved to the hash KEYS[5]
-- Returns 1 taken · 2 it is under way already · 0 the lock is another's · -1 something else is under
--   way, or another number the next one: this server has lost what it wrote. 0, -1: nothing done.
-- What was taken lives until somebody says otherwise: settle.lua.
-- Cost: 2 µs a key or field; callers name about 100 keys, or 500 fields.
-- Retry: safe, what is under way is not taken again. Cluster: all keys of one partition share a slot.

local call = redis.call
if call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
call('PEXPIRE', KEYS[1], ARGV[2])
local group = call('HGET', KEYS[2], 'group')
if group == ARGV[3] then return 2 end
if group or call('HGET', KEYS[2], 'number') ~= ARGV[4] then return -1 end

-- First, by a command that is refused when memory is out: then nothing was taken.
call('HSET', KEYS[2], 'group', ARGV[3])

if ARGV[5] == 'keys' then
  for i = 4, #KEYS, 2 do
    if call('EXISTS', KEYS[i]) == 1 then
      call('RENAME', KEYS[i], KEYS[i + 1])
      call('PERSIST', KEYS[i + 1])
    else
      call('DEL', KEYS[i + 1])  -- of another move
    end
  end
  if #ARGV > 5 then call('ZREM', KEYS[3], unpack(ARGV, 6)) end
else
  call('DEL', KEYS[5])
  for i = 6, #ARGV do
    local value = call('HGET', KEYS[4], ARGV[i])
    if value then
      call('HSET', KEYS[5], ARGV[i], value)
      call('HDEL', KEYS[4], ARGV[i])
    end
  end
end
return 1
