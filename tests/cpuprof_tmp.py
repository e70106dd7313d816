import resource, os, pytest, collections, json
def cpu():
    a=resource.getrusage(resource.RUSAGE_SELF); b=resource.getrusage(resource.RUSAGE_CHILDREN)
    return a.ru_utime+a.ru_stime, b.ru_utime+b.ru_stime
tot={}
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item, nextitem):
    import time
    a=cpu(); w=time.monotonic()
    yield
    b=cpu()
    tot[item.nodeid]=(round(b[0]-a[0],3),round(b[1]-a[1],3),round(time.monotonic()-w,3))
def pytest_sessionfinish(session):
    with open(f"/tmp/cpuprof.{os.environ.get('PYTEST_XDIST_WORKER','main')}.json","w") as f: json.dump(tot,f)
