import timing

timing.use_one_core()
import reference
import races

for r in races.race_rows(reference.build()) + races.draw_rows():
    print(r.markdown(), flush=True)
