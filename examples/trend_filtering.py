"""A change point in the flow of the Nile
======================================

The flow of the Nile at Aswan was measured in each year from 1871 to 1970. It varies from year to
year, and decreased permanently once in that century. A level for each year, with at most one
jump between neighbouring years, finds the year; more jumps show whether there was a second change.
The loss and a limit on jumps are declared, and ``solve()`` chooses dynamic programming, which is
exact.
"""

import matplotlib.pyplot as plt
import numpy as np

import sparsemodel as sm

# In 10^8 cubic metres (Cobb 1978, Biometrika 65).
measured = """
    1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140
    1100 1210 1150 1250 1260 1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831
    726 456 824 702 1120 1100 832 764 821 768 845 864 862 698 845 744 796 1040 759 781 865 845 944
    984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749 838 1050 918 986 797
    923 975 815 1020 906 901 1170 912 746 919 718 714 740"""
years, flow = np.arange(1871, 1971), np.array(measured.split(), dtype=float)

# %%
# Each year has its own level, and the constraint counts changes.
level = sm.Variable(100, name="level")
jumps = sm.Parameter(integer=True)
goal = sm.minimize(sm.squared_loss(level, flow))
problem = sm.Problem(goal, sm.card(sm.diff(level)) <= jumps)
levels = {}
for jumps.value in (0, 1, 2, 3):
    solution = problem.solve()
    levels[jumps.value] = level.value
    after = years[1:][np.diff(level.value) != 0.0]
    print(f"{jumps.value} jumps {after}: half of the mean square is {solution.value:.0f}")

# %%
# The first jump nearly halves the error: the flow is lower from 1899 on. In that year the
# construction of the first dam at Aswan began, and rainfall had decreased as well. Further jumps
# reduce the error little, and their positions depend on their number: the data show one change.
plt.plot(years, flow, ".", color="0.6", label="measured")
for k in (1, 3):
    plt.step(years, levels[k], where="mid", label=f"{k} jump" + "s" * (k > 1))
plt.legend(frameon=False)
plt.xlabel("year")
plt.ylabel("flow in $10^8$ m³")
plt.show()
