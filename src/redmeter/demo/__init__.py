"""The demo: a small shop that really runs, with everything of this product switched on.

A newcomer should see charts of a business within moments, and be able to read in a few files how an
application is instrumented. So there is a real application, served by real workers, and visitors
who send real requests; only the customers and the bank are made up.

    shape.py        when visitors come and their actions: the model of the business
    past.py         the last days, as they would have been recorded
    database.py     the products, and the shop's tables
    shop.py         the pages: an application as users write them
    server.py       serves it, by two workers
    job.py          sends confirmations, in a process of its own
    traffic.py      visitors
    running.py      all of it, from start to end

Its data has a prefix of its own, `demo:`, and is deleted at each start.
"""
