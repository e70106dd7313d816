-- Shared by operations that count by intervals in a text, "NEWEST COUNT COUNT …": the start of the newest
-- interval, Unix seconds, then the counts of that interval and of those before it.

-- Add to the interval of a start. `to` is the newest interval from now on, and `head` how a text of it
-- begins; a text that is newer stays so. `running` is the current interval. With `all`, no count is added
-- before the first that is known, nor is a zero there removed.
local function add_packed(text, step, size, running, to, head, start, amount, all)
  if to == start and text and string.sub(text, 1, #head) == head then  -- as nearly always
    local first, rest = string.match(text, '^(%d+)(.*)$', #head + 1)
    if first then return head .. whole(first + amount) .. rest end
  end
  local newest, found = string.match(text or '', '^(%d+) ([%d ]+)$')
  local counts = {}
  newest = tonumber(newest or '')
  if newest and newest <= running then
    for count in string.gmatch(found, '%d+') do counts[#counts + 1] = count end
  else
    newest = to  -- none, or the clock was set back
  end
  if newest < to then
    local moved, gap = {}, math.min((to - newest) / step, size)
    for n = 1, gap do moved[n] = '0' end
    for n = 1, math.min(#counts, size - gap) do moved[gap + n] = counts[n] end
    counts, newest = moved, to
  end
  local at = (newest - start) / step + 1
  if at <= (all and #counts or size) then
    for n = #counts + 1, at do counts[n] = '0' end
    counts[at] = whole(counts[at] + amount)
  end
  while not all and counts[#counts] == '0' do counts[#counts] = nil end
  return whole(newest) .. ' ' .. table.concat(counts, ' ')
end
